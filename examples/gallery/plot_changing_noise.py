"""
Noise that depends on the input
===============================

The measurements on the right are ten times as noisy as those on the left. A single noise level is too wide for the one
side and too narrow for the other. With ``likelihood="heteroscedastic"`` the noise is a function of the input that is
learned like the mean, and the band follows it.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (60, 1))
noise = 0.05 * 10 ** ((X[:, 0] + 2) / 4)
y = np.sin(2 * X[:, 0]) + noise * rng.standard_normal(60)

with plots.style():
    figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, sharey=True)
    for panel, likelihood in zip(axes, ("gaussian", "heteroscedastic"), strict=True):
        model = MetaGPRegressor(input_kernel="rbf", likelihood=likelihood, max_iter=600, random_state=0).fit(X, y)
        plots.plot_fit(model, X, y, margin=0, ax=panel)
        panel.set_title(f'likelihood="{likelihood}"')
    axes[0].set_xlabel("")
    plots.legend_below(figure)
plt.show()
