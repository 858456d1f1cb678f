"""`plot_fit`: what a model says along one input column, with the data it learned from."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from metaprior.plots.curves import draw_prediction
from metaprior.plots.grids import grid_along, predicted_by
from metaprior.plots.style import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_fit(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    column: int | str | None = None,
    target: int = 0,
    levels: Sequence[float] = (0.5, 0.95),
    n_draws: int = 5,
    n_points: int = 300,
    margin: float = 0.15,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot a fitted model along one column: its mean, its intervals, some functions drawn, and the data.

    Parameters
    ----------
    model : fitted estimator
        An estimator of this library, or another that predicts its uncertainty (`metaprior.compare` says which).
    X : array-like or DataFrame of shape (n_samples, n_features)
        Rows, usually those of the fit. The plot covers their range.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        The targets of these rows, which are drawn as points.
    column : int or str, default=None
        The column along which to plot, by number or name, if there are several. The others stay at their medians, and
        the points of the data then differ from the curve in these other columns, too.
    target : int, default=0
        Which of several targets.
    levels : sequence of float, default=(0.5, 0.95)
        The central intervals of y, noise and all, that are shaded.
    n_draws : int, default=5
        How many functions of the posterior are drawn, if the model can draw them.
    n_points : int, default=300
        Points of the curve.
    margin : float, default=0.15
        How far the plot reaches beyond the data, as a fraction of their range.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    grid = grid_along(X, column, n_points, margin, "plot_fit")
    predicted = predicted_by(model, grid.rows)
    data = None if y is None else (grid.data, y)
    with drawing(ax) as axes:
        draw_prediction(axes, grid.x, predicted, data, target=target, levels=levels, n_draws=n_draws)
        axes.set_xlabel(grid.name)
        axes.set_xlim(float(grid.x[0]), float(grid.x[-1]))
    return axes
