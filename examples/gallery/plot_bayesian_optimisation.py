"""
Finding a minimum in few evaluations
====================================

``minimise`` looks for the lowest value of a function that is expensive to evaluate. The first four points are spread
over the interval. After that, a network is fitted to the values so far, a function is drawn from its posterior, and the
next point is where that function is lowest. The numbers give the order of the evaluations: they gather at the minimum.
"""

import matplotlib.pyplot as plt
import numpy as np

from metaprior import plots
from metaprior.decisions import minimise
from metaprior.plots.style import DATA, DRAWS, legend_above


def function(x):
    """Return a function with two valleys, of which the right one is deeper."""
    return np.sin(3 * x[0]) + 0.1 * (x[0] - 2) ** 2


found = minimise(function, [(-3, 4)], n_observations=12, random_state=0)
print(f"lowest value found: {found.best_y:.4f} at x = {found.best_x[0]:.4f}")

grid = np.linspace(-3, 4, 400)
values = np.array([function([x]) for x in grid])
print(f"lowest value of all: {values.min():.4f} at x = {grid[values.argmin()]:.4f}")
with plots.style():
    figure, axes = plt.subplots()
    axes.plot(grid, values, "--", color=DATA, lw=1, label="function")
    axes.plot(found.X[:, 0], found.y, "o", color=DRAWS, ms=5, label="evaluations")
    for number, (x, y) in enumerate(zip(found.X[:, 0], found.y, strict=True), 1):
        axes.annotate(str(number), (x, y), (0, 6), textcoords="offset points", ha="center", fontsize="small")
    axes.set(xlabel="x", ylabel="value")
    legend_above(axes)
plt.show()
