"""`plot_predictive`: what `Predictive.plot` draws, by the kind of plot that suits the data."""

from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior.plots.calibration import plot_calibration
from metaprior.plots.curves import draw_prediction
from metaprior.plots.intervals import plot_intervals
from metaprior.plots.style import drawing
from metaprior.predictive import Predictive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("auto", "function", "calibration", "intervals")


def plot_predictive(
    predicted: Predictive,
    y: Any = None,
    *,
    x: Any = None,
    kind: str = "auto",
    target: int = 0,
    level: float = 0.95,
    n_draws: int = 5,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot a predictive distribution.

    Parameters
    ----------
    predicted : Predictive
        What `predict_distribution` returned.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        The targets of the rows, if they are known.
    x : array-like of shape (n_samples,), default=None
        What to draw a function against, instead of the input that was asked about.
    kind : {"auto", "function", "calibration", "intervals"}, default="auto"
        "function" has bands, mean and functions drawn over one input, or the probabilities of the classes.
        "calibration" is `plot_calibration`, and "intervals" is `plot_intervals`. "auto" is "function" if there is one
        input, else "calibration" if `y` is given, else "intervals".
    target : int, default=0
        Which of several targets ("calibration" draws all of them).
    level : float, default=0.95
        The widest interval of y.
    n_draws : int, default=5
        How many functions are drawn.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    if kind not in KINDS:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}; got {kind!r}.")
    x = _abscissa(predicted, x)
    if kind == "auto":
        kind = "function" if x is not None else "intervals" if y is None else "calibration"
    if kind == "calibration":
        if y is None:
            raise ValueError("plot: expected the targets y for kind='calibration'; got none.")
        return plot_calibration(predicted, y, ax=ax)
    if kind == "intervals":
        return plot_intervals(predicted, y, target=target, level=level, ax=ax)
    if x is None:
        raise ValueError(
            "plot: expected one input column for kind='function'; there are several, or they are not known: pass x=, "
            "with a number for every row."
        )
    return _plot_function(predicted, x, y, target, level, n_draws, ax)


def _abscissa(predicted: Predictive, x: Any) -> np.ndarray | None:
    """Return what a function is drawn against: x if it is given, or the one input that was asked about."""
    if x is None:
        inputs = predicted.inputs
        return inputs[:, 0] if inputs is not None and inputs.shape[1] == 1 else None
    x = np.asarray(x, np.float64)
    x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
    if x.shape != (len(predicted),):
        raise ValueError(f"x: expected {len(predicted)} numbers, one per row; got an array of shape {x.shape}.")
    return x


def _plot_function(
    predicted: Predictive, x: np.ndarray, y: Any, target: int, level: float, n_draws: int, ax: "Axes | None"
) -> "Axes":
    order = np.argsort(x, kind="stable")
    levels = (0.5, level) if level > 0.5 else (level,)
    data = None if y is None else (x, y)
    with drawing(ax) as axes:
        draw_prediction(axes, x[order], predicted[order], data, target=target, levels=levels, n_draws=n_draws)
        axes.set_xlabel("x")
    return axes
