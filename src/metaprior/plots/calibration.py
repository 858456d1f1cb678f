"""`plot_calibration`: whether predicted probabilities are the frequencies that are seen, within what chance allows.

If a forecast is calibrated, the number of n targets inside their interval of level p is binomial with n and p. So is
the number of targets in a bin of the distribution function's values (PIT), and the number of right classes in a bin of
confidence. The grey bands are the central 95 % of these.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from metaprior.metrics import coverage, just_below
from metaprior.plots.style import CHANCE, MEAN, colour, drawing, legend_above
from metaprior.predictive import PredictiveDistribution
from metaprior.predictive.classes import class_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = ("auto", "coverage", "pit", "reliability")
#: The probability of the bands of chance, and the levels at which coverage is drawn.
CHANCE_LEVEL = 0.95
LEVELS = np.arange(1, 100) / 100


def plot_calibration(
    predicted: PredictiveDistribution,
    y: Any,
    *,
    kind: str = "auto",
    n_bins: int = 10,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot how often predictions come true beside how probable they were, with a band of what chance allows.

    Parameters
    ----------
    predicted : Predictive
        What `predict_distribution` returned, at rows that the model has not seen.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        The targets of these rows; labels for classes.
    kind : {"auto", "coverage", "pit", "reliability"}, default="auto"
        "coverage" is the share of targets inside their central intervals against the level of these: below the
        diagonal, the model is too sure. "pit" is a histogram of P(Y <= y), which is flat if the model is right: high
        ends mean that it is too sure, a slope that it is off to one side. "reliability" is for classes: the share of
        right classes against the probability of the most probable class. "auto" is "reliability" for classes and
        "coverage" otherwise.
    n_bins : int, default=10
        The bins of "pit" and "reliability".
    ax : matplotlib Axes, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    if kind not in KINDS:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}; got {kind!r}.")
    if predicted.is_classification != (kind == "reliability") and kind != "auto":
        what, fits = ("classes", '"reliability"') if predicted.is_classification else ("numbers", '"coverage" or "pit"')
        raise ValueError(f"kind: expected {fits} for {what}; got {kind!r}.")
    with drawing(ax, figsize=(4.4, 4.2)) as axes:
        if predicted.is_classification:
            _draw_reliability(axes, predicted, class_numbers(predicted.classes, y, "plot_calibration"), n_bins)
        else:
            below, at = _distribution_function(predicted, y)
            if kind == "pit":
                _draw_pit(axes, below, at, n_bins)
            else:
                _draw_coverage(axes, below, at)
        legend_above(axes, ncols=2)
    return axes


def _distribution_function(predicted: PredictiveDistribution, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return P(Y < y) and P(Y <= y), [N, targets]."""
    y = np.asarray(y, np.float64).reshape(np.shape(predicted.mean))
    num_rows = len(y)
    return predicted.cdf(just_below(y)).reshape(num_rows, -1), predicted.cdf(y).reshape(num_rows, -1)


def _draw_coverage(axes: "Axes", below: np.ndarray, at: np.ndarray) -> None:
    num_rows, num_targets = at.shape
    low, high = _chance(num_rows, LEVELS)
    axes.fill_between(LEVELS, low, high, color=CHANCE, alpha=0.25, lw=0, label="what chance allows")
    axes.plot([0, 1], [0, 1], color=CHANCE, lw=0.9, ls="--")
    for k in range(num_targets):
        share = [coverage(below[:, k], at[:, k], level) for level in LEVELS]
        label = "targets inside" if num_targets == 1 else f"target {k}"
        axes.plot(LEVELS, share, color=colour(k), label=label)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("level of the central interval")
    axes.set_ylabel(f"share of {num_rows} targets inside")


def _draw_pit(axes: "Axes", below: np.ndarray, at: np.ndarray, n_bins: int) -> None:
    num_rows, num_targets = at.shape
    edges = np.linspace(0, 1, n_bins + 1)
    low, high = (n_bins * end for end in _chance(num_rows, np.array([1 / n_bins])))
    axes.axhspan(float(low[0]), float(high[0]), color=CHANCE, alpha=0.25, lw=0, label="what chance allows")
    axes.axhline(1, color=CHANCE, lw=0.9, ls="--")
    for k in range(num_targets):
        label = "targets" if num_targets == 1 else f"target {k}"
        axes.stairs(n_bins * pit_shares(below[:, k], at[:, k], n_bins), edges, color=colour(k), lw=1.6, label=label)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.5))
    axes.set_xlabel("P(Y ≤ y)")
    axes.set_ylabel(f"density of {num_rows} targets")


def pit_shares(below: np.ndarray, at: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the share of targets in every bin of P(Y <= y); one with a jump counts in every bin that the jump meets.

    The part of its jump [P(Y < y), P(Y <= y)] that lies in the bin is what it counts there.
    """
    edges = np.linspace(0, 1, n_bins + 1)
    jump = (at - below)[:, None]
    reached = np.clip((edges - below[:, None]) / np.where(jump > 0, jump, 1), 0, 1)
    reached = np.where(jump > 0, reached, edges >= at[:, None])
    reached[:, 0], reached[:, -1] = 0, 1
    return np.mean(np.diff(reached, axis=1), axis=0)


def _draw_reliability(axes: "Axes", predicted: PredictiveDistribution, numbers: np.ndarray, n_bins: int) -> None:
    probabilities = predicted.probabilities
    confidence, is_right = np.max(probabilities, axis=1), np.argmax(probabilities, axis=1) == numbers
    bins = np.clip(np.ceil(confidence * n_bins).astype(int) - 1, 0, n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    kept = count > 0
    mean, right = (np.bincount(bins, a, n_bins)[kept] / count[kept] for a in (confidence, is_right))
    low, high = _chance(count[kept], mean)
    axes.plot([0, 1], [0, 1], color=CHANCE, lw=0.9, ls="--")
    axes.vlines(mean, low, high, color=CHANCE, alpha=0.35, lw=6, label="what chance allows")
    axes.scatter(
        mean, right, s=12 + 130 * count[kept] / len(numbers), color=MEAN, zorder=3, label="rows (area: how many)"
    )
    start = max(0.0, min(1 / probabilities.shape[1], float(mean[0])) - 0.05)
    axes.set_xlim(start, 1.02)
    axes.set_ylim(min(start, float(np.min(right)), float(np.min(low))) - 0.02, 1.02)
    axes.set_xlabel("probability of the most probable class")
    axes.set_ylabel("share of rows where it is right")


def _chance(num_rows: Any, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the central 95 % of a binomial share."""
    tail = (1 - CHANCE_LEVEL) / 2
    return binom.ppf(tail, num_rows, p) / num_rows, binom.ppf(1 - tail, num_rows, p) / num_rows
