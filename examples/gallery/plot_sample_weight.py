"""
Rows that count more than others
================================

A weight says how often a row counts: 0 is the same as no row, and 5 the same as five equal ones. Here an old instrument
reads too low. Fitted to all rows alike, the curve runs between both instruments. With a weight of 0.05 for the rows of
the old one, the curve follows the new instrument, and uses the old one only where there is nothing else.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (100, 1))
is_old = rng.uniform(size=100) < 0.5
y = np.sin(2 * X[:, 0]) - 0.5 * is_old + 0.1 * rng.standard_normal(100)

with plots.style():
    figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, sharey=True)
    for panel, (name, weight) in zip(axes, {"all rows alike": 1.0, "old rows count 0.05": 0.05}.items(), strict=True):
        model = MetaGPRegressor(input_kernel="rbf", random_state=0)
        model.fit(X, y, sample_weight=np.where(is_old, weight, 1.0))
        plots.plot_fit(model, X, levels=(0.95,), n_draws=0, ax=panel)
        panel.plot(X[~is_old], y[~is_old], "k.", label="new instrument")
        panel.plot(X[is_old], y[is_old], "kx", ms=4, label="old instrument")
        panel.set_title(name)
    axes[0].set_xlabel("")
    plots.legend_below(figure)
plt.show()
