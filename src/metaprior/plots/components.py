"""`plot_components`: what each additive part of the input kernel contributes to the prediction."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from metaprior.estimators.components import WEIGHT_NOISE, KernelComponents, kernel_components
from metaprior.plots.grids import Grid, grid_along, names_of
from metaprior.plots.style import MEAN, colour, drawing, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The weight noise is not drawn where it is less than this part of the range of all parts.
LEAST = 0.02


def plot_components(
    model: Any,
    X: Any,
    *,
    column: int | str | None = None,
    target: int = 0,
    level: float = 0.95,
    n_points: int = 300,
    margin: float = 0.15,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot what each additive part of the fitted input kernel contributes.

    Along one column these are curves: the mean of every part given the data, with its interval. Each part is drawn
    around its own average over the rows of X, because the data say little of the level of one part. With the average of
    the function the curves add up to its mean. For X with several columns and no `column`, it is one bar for each part:
    how much its mean varies over the rows of X. (`metaprior.estimators.kernel_components` has the numbers.)

    Parameters
    ----------
    model : MetaGPRegressor or MetaGPClassifier
        Fitted, with an input kernel that is a sum.
    X : array-like or DataFrame of shape (n_samples, n_features)
        Rows, usually those of the fit.
    column : int or str, default=None
        The column along which to plot, if there are several. The others stay at their medians.
    target : int, default=0
        Which of several targets or classes.
    level : float, default=0.95
        The probability of the intervals.
    n_points : int, default=300
        Points of a curve.
    margin : float, default=0.15
        How far the plot reaches beyond the data, as a fraction of their range.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    if column is None and len(names_of(X)) > 1:
        return _plot_bars(kernel_components(model, X), target, ax)
    grid = grid_along(X, column, n_points, margin, "plot_components")
    return _plot_curves(kernel_components(model, grid.rows, around=X), grid, target, level, ax)


def _plot_curves(found: KernelComponents, grid: Grid, target: int, level: float, ax: "Axes | None") -> "Axes":
    reach = ndtri((1 + level) / 2)
    with drawing(ax) as axes:
        means, stds = (_of_target(values, target) for values in (found.mean, found.std))
        for number, name in enumerate(found.names):
            mean, std = means[number], stds[number]
            if name == WEIGHT_NOISE and np.max(np.abs(mean) + std) < LEAST * np.ptp(means):
                continue
            axes.fill_between(grid.x, mean - reach * std, mean + reach * std, color=colour(number), alpha=0.18, lw=0)
            axes.plot(grid.x, mean, color=colour(number), label=name)
        axes.axvspan(float(np.min(grid.data)), float(np.max(grid.data)), color="#F4F4F4", zorder=0)
        axes.set_xlim(float(grid.x[0]), float(grid.x[-1]))
        axes.set_xlabel(grid.name)
        axes.set_ylabel("part of the function, around its average")
        legend_above(axes, ncols=2)
    return axes


def _plot_bars(found: KernelComponents, target: int, ax: "Axes | None") -> "Axes":
    spread = np.std(_of_target(found.mean, target), axis=1)
    order = np.argsort(-spread, kind="stable")
    with drawing(ax, figsize=(6.0, 0.9 + 0.3 * len(order))) as axes:
        axes.barh(np.arange(len(order)), spread[order], height=0.62, color=MEAN)
        axes.set_yticks(np.arange(len(order)), [found.names[i] for i in order])
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlabel("standard deviation of the part's mean over the rows")
    return axes


def _of_target(values: np.ndarray, target: int) -> np.ndarray:
    """Return one output of values [parts, N] or [parts, N, outputs]."""
    if values.ndim == 2 and target == 0:
        return values
    num_outputs = 1 if values.ndim == 2 else values.shape[2]
    if not 0 <= target < num_outputs:
        raise ValueError(f"target: expected a number from 0 to {num_outputs - 1}; got {target}.")
    return values[..., target]
