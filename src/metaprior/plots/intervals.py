"""`plot_intervals`: rows in the order of their predictions, each with its interval; classes by their probability."""

from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior.plots.curves import SHADE, central_interval, draw_points, target_of
from metaprior.plots.style import DATA, DRAWS, MEAN, drawing, legend_above
from metaprior.predictive import PredictiveDistribution
from metaprior.predictive.classes import class_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_intervals(
    predicted: PredictiveDistribution,
    y: Any = None,
    *,
    target: int = 0,
    level: float = 0.95,
    most: int = 150,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot the predictions of rows in the order of their means, each with its interval of y.

    For classes, it is the probability of the most probable class of every row, in their order. Targets outside of their
    interval, and rows whose most probable class is wrong, are marked.

    Parameters
    ----------
    predicted : Predictive
        What `predict_distribution` returned.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        The targets of the rows, if they are known.
    target : int, default=0
        Which of several targets.
    level : float, default=0.95
        The probability of the intervals.
    most : int, default=150
        The most rows that are drawn. Of more, as many are taken evenly over the order.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    with drawing(ax) as axes:
        if predicted.is_classification:
            _draw_confidence(axes, predicted, y, most)
        else:
            _draw_intervals(
                axes, predicted, None if y is None else target_of(np.asarray(y), target), target, level, most
            )
        legend_above(axes)
    return axes


def _draw_intervals(
    axes: "Axes", predicted: PredictiveDistribution, y: np.ndarray | None, target: int, level: float, most: int
) -> None:
    mean = target_of(predicted.mean, target)
    low, high = (target_of(end, target) for end in central_interval(predicted, level))
    order = _evenly(np.argsort(mean, kind="stable"), most)
    place = np.arange(len(order))
    axes.vlines(place, low[order], high[order], color=MEAN, alpha=2 * SHADE, lw=2.2, label=f"{100 * level:g} % of y")
    axes.plot(place, mean[order], "_", color=MEAN, ms=4, label="mean")
    if y is not None:
        is_out = ((y < low) | (y > high))[order]
        draw_points(axes, place[~is_out], y[order][~is_out])
        axes.plot(place[is_out], y[order][is_out], "o", mfc="none", color=DRAWS, ms=4.5, label="data outside")
    axes.set_xlabel(_order_label("mean", len(mean), len(order)))
    axes.set_ylabel("y")


def _draw_confidence(axes: "Axes", predicted: PredictiveDistribution, y: Any, most: int) -> None:
    probabilities = predicted.probabilities
    best, confidence = np.argmax(probabilities, axis=1), np.max(probabilities, axis=1)
    order = _evenly(np.argsort(confidence, kind="stable"), most)
    place = np.arange(len(order))
    axes.plot(place, confidence[order], color=MEAN, label="probability of the most probable class")
    if y is not None:
        is_wrong = (class_numbers(predicted.classes, y, "plot_intervals") != best)[order]
        axes.plot(place[is_wrong], confidence[order][is_wrong], "o", mfc="none", color=DRAWS, ms=5, label="wrong class")
    even = 1 / probabilities.shape[1]
    axes.axhline(even, color=DATA, lw=0.8, ls=":", label="all classes alike")
    axes.set_ylim(min(even, float(np.min(confidence))) - 0.03, 1.02)
    axes.set_xlabel(_order_label("probability", len(best), len(order)))
    axes.set_ylabel("probability")


def _evenly(order: np.ndarray, most: int) -> np.ndarray:
    """Return at most so many of the rows, evenly over their order."""
    return order[np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int)]


def _order_label(by: str, num_rows: int, num_drawn: int) -> str:
    part = "" if num_drawn == num_rows else f", {num_drawn} of {num_rows}"
    return f"rows in the order of their {by}{part}"
