"""Bayesian optimisation of Branin's function, drawn."""

import numpy as np
from matplotlib.figure import Figure

from metaprior import plots
from metaprior.decisions import minimise
from metaprior.plots.style import CHANCE

BOUNDS, LOWEST = ((-5.0, 10.0), (0.0, 15.0)), 0.39788735772973816


def branin(x):
    """Return Branin's function, with three equal minima. It stands for an experiment that takes hours."""
    valley = x[1] - 5.1 / (4 * np.pi**2) * x[0] ** 2 + 5 / np.pi * x[0] - 6
    return valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x[0]) + 10


def picture():
    """Minimise Branin's function, and draw the evaluated points, the surrogate's mean and the regret."""
    found = minimise(branin, BOUNDS, 40, random_state=0, verbose=True)
    regret = np.minimum.accumulate(found.y) - LOWEST
    print(f"lowest value {found.best_y:.4f} at {found.best_x.round(3)}; regret {regret[-1]:.4f}")
    side = [np.linspace(low, high, 80) for low, high in BOUNDS]
    grid = np.stack(np.meshgrid(*side), -1).reshape(-1, 2)
    truth = np.log(np.array([branin(x) for x in grid])).reshape(80, 80)
    believed = found.model.predict(grid).reshape(80, 80)
    with plots.style():
        draw(side, truth, believed, found, regret)
    print("picture: optimise.png")


def draw(side, truth, believed, found, regret):
    """Draw the function and the surrogate with the points evaluated, and the regret."""
    figure = Figure(figsize=(12, 3.8))
    axes = figure.subplots(1, 3)
    for axis, values, title in zip(
        axes, (truth, believed), ("log Branin", "the surrogate's mean (warped)"), strict=False
    ):
        axis.contourf(*side, values, 30, cmap="Greys")
        points = axis.scatter(*found.X.T, c=np.arange(len(found.y)), cmap="YlOrRd", s=22, edgecolors="k", lw=0.5)
        axis.set(title=title, xlabel="x0", ylabel="x1")
    figure.colorbar(points, ax=axes[1], label="evaluation")
    axes[2].semilogy(np.arange(1, len(regret) + 1), regret, ".-")
    axes[2].axhline(0.01, color=CHANCE, lw=1)
    axes[2].set(title="simple regret", xlabel="evaluations", ylabel="best so far less the minimum")
    figure.savefig("optimise.png", dpi=130)


if __name__ == "__main__":
    picture()
