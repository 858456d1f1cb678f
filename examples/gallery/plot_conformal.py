"""
Intervals with a guarantee
==========================

Whether 90 % intervals contain 90 % of new targets depends on whether the model is right, and here the noise has heavier
tails than the model expects. ``ConformalRegressor`` holds out a quarter of the rows and moves the ends of the intervals
until as many of these rows lie inside as should. Whatever the model, new rows of the same distribution are then covered
with at least that probability on average. The dashed lines are the interval before, the band is the one after.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import MetaGPRegressor, plots
from metaprior.conformal import ConformalRegressor
from metaprior.plots.style import DATA, MEAN, legend_above

rng = np.random.default_rng(0)


def rows(count):
    """Return rows whose noise has two degrees of freedom."""
    x = rng.uniform(-2, 2, (count, 1))
    return x, np.sin(2 * x[:, 0]) + 0.2 * rng.standard_t(2, count)


X, y = rows(133)
X_new, y_new = rows(2000)
model = MetaGPRegressor(input_kernel="rbf", random_state=0)
conformal = ConformalRegressor(model, level=0.9, random_state=0).fit(X, y)
grid = np.linspace(-2, 2, 200)
before = conformal.estimator_.predict_distribution(grid[:, None]).interval(0.9)
after = conformal.predict_interval(grid[:, None])
for name, (low, high) in {
    "before": conformal.estimator_.predict_distribution(X_new).interval(0.9),
    "after": conformal.predict_interval(X_new),
}.items():
    print(f"{name}: {np.mean((low <= y_new) & (y_new <= high)):.1%} of 2000 new targets inside")

with plots.style():
    figure, axes = plt.subplots()
    axes.fill_between(grid, *after, color=MEAN, alpha=0.2, lw=0, label="90 %, calibrated")
    for end, label in zip(before, ("90 % of the model", None), strict=True):
        axes.plot(grid, end, "--", color=MEAN, lw=1.2, label=label)
    axes.plot(X, y, ".", color=DATA, label="data")
    axes.set(xlabel="x", ylabel="y", ylim=(-3, 3))
    legend_above(axes)
plt.show()
