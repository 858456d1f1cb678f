"""
A season with a trend, extrapolated
===================================

Sales rise slowly and swing with the week. The sum of an RBF and a periodic kernel says just that: a smooth trend and
something that repeats. The period is not given, and the fit finds it in the first 75 days. The crosses are the days
after these, which the model has not seen: most of them lie inside the band.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, kernels, plots

rng = np.random.default_rng(0)
day = np.arange(100.0)[:, None]
sales = 20 + 0.1 * day[:, 0] + 3 * np.sin(2 * np.pi * day[:, 0] / 7) + rng.standard_normal(100)
known = day[:, 0] < 75

model = MetaGPRegressor(input_kernel=kernels.RBF() + kernels.Periodic(), random_state=0).fit(day[known], sales[known])
print("fitted:", model.input_kernel_)
axes = plots.plot_fit(model, day[known], sales[known], margin=0.36, n_draws=3)
axes.plot(day[~known], sales[~known], "k+", ms=5, label="days to come")
axes.set(xlim=(0, 100), xlabel="day", ylabel="sales")
plots.legend_below(axes.figure)
plt.show()
