"""Metrics: how good predictive distributions are, once the targets are known.

`scores` takes any `PredictiveDistribution` with the targets and returns all metrics by name. The functions before it
compute single metrics from arrays, and `auroc` compares two sets of rows. Smaller is better, except for accuracy and
AUROC. Coverage should equal its level.

Calibration and coverage use the distribution function just below y and at y. The two differ only where single values
have positive probability (counts). If a forecast is calibrated, P(Y < y) + v P(Y = y) with uniform v is uniform. So the
calibration error averages over v, and an interval contains y if it contains any part of the jump.
"""

import numpy as np
from scipy.stats import rankdata

from metaprior.predictive.classes import class_numbers
from metaprior.predictive.protocol import PredictiveDistribution

#: Nominal levels at which the calibration of a regression is measured.
LEVELS = np.arange(1, 20) / 20
#: Central intervals whose coverage is measured, in percent.
INTERVALS = (50, 90, 95)
#: Number of bins of confidence for the calibration of a classifier.
NUM_BINS = 15
EPSILON = np.finfo(np.float64).eps


# --- targets that have an order ---------------------------------------------------


def rmse(mean: np.ndarray, y: np.ndarray) -> float:
    """Return the root mean squared error, averaged over outputs."""
    return float(np.mean(np.sqrt(np.mean((np.asarray(y) - mean) ** 2, axis=0))))


def calibration_error(below: np.ndarray, at: np.ndarray) -> float:
    """Return the mean gap between the levels 0.05, ..., 0.95 and the fraction of targets below those quantiles.

    Parameters
    ----------
    below, at : array
        P(Y < y) and P(Y <= y), rows first. A target with a level in between counts by the part of the jump below it.
        NaN, for a distribution that is unknown, makes the error NaN.
    """
    if np.any(np.isnan(at)):
        return float("nan")
    levels = LEVELS.reshape(-1, *[1] * np.ndim(at))
    jump = np.asarray(at) - below
    part = np.clip((levels - below) / np.where(jump > 0, jump, 1), 0, 1)
    share = np.mean(np.where(jump > 0, part, at <= levels), axis=1)  # [levels, ...]
    return float(np.mean(np.abs(share - levels[:, 0])))


def coverage(below: np.ndarray, at: np.ndarray, level: float) -> float:
    """Return the fraction of targets inside the central interval of a level, from P(Y < y) and P(Y <= y), or NaN."""
    if np.any(np.isnan(at)):
        return float("nan")
    return float(np.mean((np.asarray(at) >= (1 - level) / 2) & (np.asarray(below) <= (1 + level) / 2)))


# --- classes ----------------------------------------------------------------------


def accuracy(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Return the fraction of rows whose most probable class is the right one."""
    return float(np.mean(np.argmax(probabilities, axis=1) == y))


def brier(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Return the squared error of the probabilities, summed over classes and averaged over rows: from 0 to 2."""
    truth = np.arange(np.shape(probabilities)[1]) == np.asarray(y)[:, None]
    return float(np.mean(np.sum((probabilities - truth) ** 2, axis=1)))


def expected_calibration_error(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Return the mean gap between confidence and accuracy over 15 bins of confidence, weighted by their rows."""
    confidence = np.max(probabilities, axis=1)
    excess = confidence - (np.argmax(probabilities, axis=1) == y)
    bins = np.clip(np.ceil(confidence * NUM_BINS).astype(int) - 1, 0, NUM_BINS - 1)
    return float(np.sum(np.abs(np.bincount(bins, excess, NUM_BINS))) / len(excess))


def auroc(inside: np.ndarray, outside: np.ndarray) -> float:
    """Return how well a number separates rows outside the data from rows inside: P(outside > inside) + P(=) / 2.

    Parameters
    ----------
    inside, outside : array of shape (n,) and (m,)
        A number, such as the `entropy` of a `Predictive`, at rows like the training data and at other rows.

    Returns
    -------
    float
        1 if all rows outside have larger numbers than all rows inside, 0.5 if the number does not separate them.
    """
    num_inside, num_outside = np.size(inside), np.size(outside)
    if not (num_inside and num_outside):
        raise ValueError(f"auroc: expected rows inside and outside; got {num_inside} and {num_outside}.")
    ranks = rankdata(np.concatenate([np.ravel(inside), np.ravel(outside)]))
    lowest = num_outside * (num_outside + 1) / 2
    return float((np.sum(ranks[num_inside:]) - lowest) / (num_inside * num_outside))


# --- all of them ------------------------------------------------------------------


def scores(predictive: PredictiveDistribution, y: np.ndarray) -> dict[str, float]:
    """Return the scores of a predictive distribution on known targets.

    Parameters
    ----------
    predictive : PredictiveDistribution
        What `predict_distribution` returned at the inputs of these targets.
    y : array of shape (n,) or (n, n_outputs)
        The targets. For a classifier these are labels, as in `classes_`; where labels are no numbers, class numbers
        (the positions in `classes_`) are understood as well.

    Returns
    -------
    dict of float
        Regression: `rmse`, `nll`, `crps`, `calibration_error`, `coverage_50`, `coverage_90` and `coverage_95`. They are
        means over outputs, except for the `nll`, which is that of all outputs jointly.
        Classification: `accuracy`, `nll`, `brier`, `calibration_error` and `entropy`.
    """
    return _class_scores(predictive, y) if predictive.is_classification else _regression_scores(predictive, y)


def _regression_scores(predictive: PredictiveDistribution, y: np.ndarray) -> dict[str, float]:
    mean = predictive.mean
    y = np.asarray(y, np.float64)
    if y.ndim == 0 or y.reshape(len(y), -1).shape != mean.reshape(len(mean), -1).shape:
        raise ValueError(f"scores: expected targets of shape {mean.shape}, like the predictions; got {y.shape}.")
    y = y.reshape(mean.shape)
    below, at = predictive.cdf(just_below(y)), predictive.cdf(y)
    return {
        "rmse": rmse(mean, y),
        "nll": -float(np.mean(predictive.log_prob(y))),
        "crps": float(np.mean(predictive.crps(y))),
        "calibration_error": calibration_error(below, at),
        **{f"coverage_{percent}": coverage(below, at, percent / 100) for percent in INTERVALS},
    }


def just_below(y: np.ndarray) -> np.ndarray:
    """Return numbers just below y. Below 0 the number is not subnormal, because JAX rounds those to 0."""
    return y - EPSILON * np.maximum(np.abs(y), 1e-290)


def _class_scores(predictive: PredictiveDistribution, y: np.ndarray) -> dict[str, float]:
    probabilities, numbers = predictive.probabilities, class_numbers(predictive.classes, y, "scores")
    if len(numbers) != len(probabilities):
        raise ValueError(f"scores: expected {len(probabilities)} labels, one per row; got {len(numbers)}.")
    return {
        "accuracy": accuracy(probabilities, numbers),
        "nll": -float(np.mean(predictive.log_prob(y))),
        "brier": brier(probabilities, numbers),
        "calibration_error": expected_calibration_error(probabilities, numbers),
        "entropy": float(np.mean(predictive.entropy)),
    }
