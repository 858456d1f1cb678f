"""
The parts of a fitted function
==============================

A sum of kernels makes the function a sum of parts, and each part has a posterior of its own. Here a slow trend and a
wave are fitted together, without the period being given. ``plot_components`` draws both parts with their intervals,
each around its own average.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, kernels, plots

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, (100, 1)), axis=0)
y = 0.05 * (X[:, 0] - 4) ** 2 + np.sin(2 * np.pi * X[:, 0] / 1.5) + 0.15 * rng.standard_normal(100)
model = MetaGPRegressor(input_kernel=kernels.RBF() + kernels.Periodic(), random_state=0).fit(X, y)

with plots.style():
    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True)
plots.plot_fit(model, X, y, ax=above)
plots.plot_components(model, X, ax=below)
above.set_xlabel("")
plt.show()
