"""
A season with a trend, extrapolated
===================================

Sales rise slowly and swing with the week. The sum of an RBF and a periodic kernel says just that: a smooth trend and
something that repeats. The period is not given, and the fit finds it. The model with an RBF alone explains the same
days as well, but a few days after the last one it has nothing to say, and its band shows it.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, kernels, plots

rng = np.random.default_rng(0)
day = np.arange(100.0)[:, None]
sales = 20 + 0.1 * day[:, 0] + 3 * np.sin(2 * np.pi * day[:, 0] / 7) + rng.standard_normal(100)
known = day[:, 0] < 75

with plots.style():
    figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, sharey=True)
for panel, kernel in zip(axes, (kernels.RBF() + kernels.Periodic(), kernels.RBF()), strict=True):
    model = MetaGPRegressor(input_kernel=kernel, random_state=0).fit(day[known], sales[known])
    plots.plot_fit(model, day[known], sales[known], margin=0.36, n_draws=3, ax=panel)
    panel.plot(day[~known], sales[~known], "k+", ms=4, label="days to come")
    panel.set(xlim=(0, 100), ylabel="sales", xlabel="day")
axes[0].set_title("RBF + Periodic")
axes[0].set_xlabel("")
axes[1].set_title("RBF")
axes[1].get_legend().remove()
plt.show()
