"""
Not knowing in a gap
====================

There are no data between -0.8 and 0.8. A network with an RBF input kernel is local: what it has learned on one side
says little about the middle of the gap, so the functions drawn from its posterior fan out there. Without an input
kernel, the same network bridges the gap with one simple function and is much surer of it. Which of them is right
depends on the function. The kernel is how you say which you expect.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots

rng = np.random.default_rng(0)
X = np.concatenate([rng.uniform(-2, -0.8, (50, 1)), rng.uniform(0.8, 2, (50, 1))])
y = np.sin(4 * X[:, 0]) + 0.1 * rng.standard_normal(100)

with plots.style():
    figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, sharey=True)
for panel, kernel in zip(axes, ("rbf", None), strict=True):
    model = MetaGPRegressor(input_kernel=kernel, random_state=0).fit(X, y)
    plots.plot_fit(model, X, y, ax=panel)
    panel.set_title(f"input_kernel={kernel!r}")
axes[0].set_xlabel("")
axes[1].get_legend().remove()
plt.show()
