"""Curves over one input: the mean, bands and functions of a regression, or class probabilities; and points of data."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from metaprior.plots.style import DATA, DRAWS, MEAN, colour
from metaprior.predictive import Predictive, PredictiveDistribution
from metaprior.predictive.classes import class_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: How opaque a band is, and how much of its range a plot of probabilities keeps below 0 for the marks of the data.
SHADE, BELOW = 0.2, 0.05
#: Points up to which each is drawn in full.
FEW_POINTS = 300


def draw_regression(
    axes: "Axes",
    x: np.ndarray,
    predicted: PredictiveDistribution,
    *,
    target: int = 0,
    levels: Sequence[float] = (0.5, 0.95),
    n_draws: int = 5,
) -> None:
    """Draw the mean, the central intervals of y from the widest to the narrowest, and functions of the posterior."""
    for level in sorted(levels, reverse=True):
        low, high = (target_of(end, target) for end in central_interval(predicted, level))
        axes.fill_between(x, low, high, color=MEAN, alpha=SHADE, lw=0, label=f"{100 * level:g} % of y")
    if n_draws > 0 and isinstance(predicted, Predictive):
        for number, function in enumerate(predicted.draws()[:n_draws]):
            label = "functions drawn" if number == 0 else None
            axes.plot(x, target_of(function, target), color=DRAWS, lw=0.7, alpha=0.8, label=label)
    axes.plot(x, target_of(predicted.mean, target), color=MEAN, lw=1.9, label="mean")
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
    axes.set_ylim(-BELOW * 1.5, 1.02)


def mark_classes(axes: "Axes", x: np.ndarray, y: Any, predicted: PredictiveDistribution) -> None:
    """Mark the data of every class by strokes below the curves."""
    numbers = class_numbers(predicted.classes, y, "plot_fit")
    for number in np.unique(numbers):
        own = x[numbers == number]
        place = np.full(len(own), -BELOW * 0.75)
        axes.plot(own, place, "|", color=colour(number), ms=7, alpha=0.7, label=f"data, {predicted.classes[number]}")


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
