"""
Finding a minimum in few evaluations
====================================

``minimise`` looks for the lowest value of a function that is expensive to evaluate. The first four points are spread
over the interval. After that, a network is fitted to the values so far, a function is drawn from its posterior, and the
next point is where that function is lowest. The colour gives the order of the evaluations. Of the late ones, most lie
at the bottom of the deepest valley, and some still look elsewhere.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import plots
from metaprior.decisions import minimise
from metaprior.plots.style import DATA, legend_above


def function(x):
    """Return a function with four valleys."""
    return np.sin(3 * x[0]) + 0.1 * (x[0] - 2) ** 2


found = minimise(function, [(-3, 4)], n_observations=12, random_state=0)
print(f"lowest value found: {found.best_y:.4f} at x = {found.best_x[0]:.4f}")

grid = np.linspace(-3, 4, 400)
values = np.array([function([x]) for x in grid])
print(f"lowest value of all: {values.min():.4f} at x = {grid[values.argmin()]:.4f}")
with plots.style():
    figure, axes = plt.subplots()
    axes.plot(grid, values, "--", color=DATA, lw=1, label="function")
    points = axes.scatter(found.X[:, 0], found.y, c=np.arange(1, 13), cmap="YlOrRd", s=36, ec=DATA, lw=0.6, zorder=3)
    figure.colorbar(points, label="number of the evaluation", ticks=range(2, 13, 2))
    axes.set(xlabel="x", ylabel="value")
    legend_above(axes)
plt.show()
