"""Curves over one input: the mean, bands and functions of a regression, or class probabilities; and points of data."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from metaprior.plots.style import DATA, DRAWS, MEAN, colour, legend_above
from metaprior.predictive import Predictive, PredictiveDistribution
from metaprior.predictive.classes import class_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How opaque the widest band is, and the height of a line of strokes below probabilities.
SHADE, BELOW = 0.18, 0.03
#: Points up to which each is drawn in full.
FEW_POINTS = 300


def draw_prediction(
    axes: "Axes",
    x: np.ndarray,
    predicted: PredictiveDistribution,
    data: tuple[np.ndarray, Any] | None,
    *,
    target: int,
    levels: Sequence[float],
    n_draws: int,
) -> None:
    """Draw what is predicted along x, of numbers or of classes, and the data (x and y), if there are any."""
    if predicted.is_classification:
        draw_classes(axes, x, predicted)
        if data is not None:
            mark_classes(axes, *data, predicted)
    else:
        draw_regression(axes, x, predicted, target=target, levels=levels, n_draws=n_draws)
        if data is not None:
            draw_points(axes, data[0], target_of(np.asarray(data[1]), target))
    legend_above(axes, ncols=5)


def draw_regression(
    axes: "Axes",
    x: np.ndarray,
    predicted: PredictiveDistribution,
    *,
    target: int = 0,
    levels: Sequence[float] = (0.5, 0.95),
    n_draws: int = 5,
) -> None:
    """Draw the central intervals of y from the widest to the narrowest, the mean, and functions of the posterior.

    The functions are thin lines on top, so that they are seen even where they hardly differ from the mean.
    """
    for number, level in enumerate(sorted(levels, reverse=True), 1):
        low, high = (target_of(end, target) for end in central_interval(predicted, level))
        axes.fill_between(
            x, low, high, color=MEAN, alpha=min(0.9, number * SHADE), lw=0, label=f"{100 * level:g} % of y"
        )
    axes.plot(x, target_of(predicted.mean, target), color=MEAN, lw=3.0, label="mean")
    if n_draws > 0 and isinstance(predicted, Predictive):
        for number, function in enumerate(predicted.draws()[:n_draws]):
            label = "functions drawn" if number == 0 else None
            axes.plot(x, target_of(function, target), color=DRAWS, lw=0.6, label=label)
    axes.set_ylabel("y")


def draw_points(axes: "Axes", x: np.ndarray, y: np.ndarray) -> None:
    """Draw data as points, fainter where there are many."""
    alpha = min(1.0, (FEW_POINTS / max(len(x), 1)) ** 0.5)
    axes.plot(x, y, ".", color=DATA, ms=4, alpha=alpha, label="data", zorder=3)


def draw_classes(axes: "Axes", x: np.ndarray, predicted: PredictiveDistribution) -> None:
    """Draw the probability of every class (of the second one, if there are two), with what more data could change."""
    probabilities, classes = predicted.probabilities, predicted.classes
    shown = [1] if len(classes) == 2 else range(len(classes))
    for number in shown:
        p = probabilities[:, number]
        if isinstance(predicted, Predictive):
            spread = np.sqrt(predicted.epistemic_variance[:, number])
            low, high = np.clip(p - spread, 0, 1), np.clip(p + spread, 0, 1)
            axes.fill_between(x, low, high, color=colour(number), alpha=SHADE, lw=0)
        axes.plot(x, p, color=colour(number), label=f"p({classes[number]})")
    axes.set_ylabel("probability")
    axes.set_ylim(-0.02, 1.02)


def mark_classes(axes: "Axes", x: np.ndarray, y: Any, predicted: PredictiveDistribution) -> None:
    """Mark the data by strokes below the curves, one line of them for every class."""
    classes = predicted.classes
    numbers = class_numbers(classes, y, "plot_fit")
    for number, name in enumerate(classes):
        own = x[numbers == number]
        label = f"data, {name}" if len(classes) == 2 else None
        axes.plot(
            own, np.full(len(own), -BELOW * (number + 1)), "|", color=colour(number), ms=5, alpha=0.8, label=label
        )
    axes.set_ylim(-BELOW * (len(classes) + 1), 1.02)


def central_interval(predicted: PredictiveDistribution, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the central interval of y: exact, or that of a Gaussian where only mean and variance are known."""
    if isinstance(predicted, Predictive):
        return predicted.interval(level)
    reach = ndtri((1 + level) / 2) * np.sqrt(predicted.variance)
    return predicted.mean - reach, predicted.mean + reach


def target_of(values: np.ndarray, target: int) -> np.ndarray:
    """Return one target of values [N] or [N, targets]."""
    if values.ndim == 1:
        if target != 0:
            raise ValueError(f"target: expected 0, as there is one target; got {target}.")
        return values
    if not 0 <= target < values.shape[1]:
        raise ValueError(f"target: expected a number from 0 to {values.shape[1] - 1}; got {target}.")
    return values[:, target]
