"""
Not knowing in a gap
====================

There are no data between -0.8 and 0.8. With an RBF input kernel, the functions drawn from the posterior fan out in the
gap, about as far as the wave has gone where there are data. Without an input kernel the same network knows even less
there: each of its functions makes a large, simple bend through the gap. Outside of the gap both agree.
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
    plots.legend_below(figure)
plt.show()
