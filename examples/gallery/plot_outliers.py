"""
A few wrong measurements
========================

Six of the hundred measurements are far off. Gaussian noise has to explain them, so its standard deviation grows and the
band covers far more than the other points. The noise of ``likelihood="student_t"`` has heavy tails: a few far points
are what it expects, and the band keeps to the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots

rng = np.random.default_rng(1)
X = rng.uniform(-2, 2, (100, 1))
y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(100)
y[:6] += rng.choice([-1, 1], 6) * rng.uniform(2, 4, 6)

with plots.style():
    figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, sharey=True)
for panel, likelihood in zip(axes, ("gaussian", "student_t"), strict=True):
    model = MetaGPRegressor(input_kernel="rbf", likelihood=likelihood, random_state=0).fit(X, y)
    plots.plot_fit(model, X, y, levels=(0.9,), ax=panel)
    panel.set_title(f'likelihood="{likelihood}"')
axes[0].set_xlabel("")
axes[1].get_legend().remove()
plt.show()
