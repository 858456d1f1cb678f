"""
Counts
======

The number of visitors in an hour is a whole number and never negative. With ``likelihood="poisson"`` the network learns
the logarithm of the rate, and the intervals are those of a Poisson variable: their ends are whole numbers, they never
reach below zero, and they are wide where there are many visitors.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots

rng = np.random.default_rng(0)
hour = np.sort(rng.uniform(0, 24, (60, 1)), axis=0)
rate = 1 + 12 * np.exp(-0.5 * ((hour[:, 0] - 9) / 2) ** 2) + 8 * np.exp(-0.5 * ((hour[:, 0] - 18) / 3) ** 2)
visitors = rng.poisson(rate)

model = MetaGPRegressor(input_kernel="rbf", likelihood="poisson", random_state=0).fit(hour, visitors)
axes = plots.plot_fit(model, hour, visitors, margin=0)
axes.plot(hour, rate, "k--", lw=1, label="true rate")
axes.set(xlabel="hour", ylabel="visitors")
plots.legend_below(axes.figure)
plt.show()
