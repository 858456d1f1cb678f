"""Whether intervals contain as many targets as they say. Each fraction comes with a binomial interval."""

from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from metaprior.diagnosis.checks.calibration import LEAST_ROWS, LEVEL
from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.subject import Subject

NAME = "coverage"
#: The central intervals that are looked at, in percent.
PERCENTS = (50, 90, 95)


class Covered(NamedTuple):
    """The fraction of targets in an interval, its 95 % binomial interval, and the p-value of the nominal level."""

    percent: int
    fraction: float
    low: float
    high: float
    p_value: float


def coverage(subject: Subject) -> Finding | LeftOut:
    """Count the targets in central intervals."""
    if subject.is_classification:
        return LeftOut(NAME, "classes have no intervals; calibration looks at their probabilities.")
    if len(subject) < LEAST_ROWS:
        return LeftOut(NAME, f"{len(subject)} rows are too few; give at least {LEAST_ROWS}.")
    found = [covered(subject.pit, subject.replicate_pits, percent) for percent in PERCENTS]
    numbers = {
        f"{name}_{own.percent}": getattr(own, name) for own in found for name in ("fraction", "low", "high", "p_value")
    }
    told = "; ".join(f"{own.percent} %: {own.fraction:.1%} ({own.low:.0%} to {own.high:.0%})" for own in found)
    too_few = [own for own in found if own.p_value < LEVEL and 100 * own.fraction < own.percent]
    too_many = [own for own in found if own.p_value < LEVEL and 100 * own.fraction > own.percent]
    if too_few:
        sentence = f"Intervals contain fewer of the {subject.rows_name} than they say ({told})."
        advice = "See calibration; until then, read an interval of 95 % as the fraction that is counted here."
        return Finding(NAME, "warning", sentence, advice, numbers)
    if too_many and not subject.is_training:
        sentence = f"Intervals contain more of the {subject.rows_name} than they say ({told})."
        return Finding(NAME, "note", sentence, "Intervals are on the side of caution; see calibration.", numbers)
    return Finding(NAME, "ok", f"Intervals contain what they say ({told}).", "", numbers)


def covered(pit: np.ndarray, replicates: np.ndarray | None, percent: int) -> Covered:
    """Return the coverage of a central interval; outputs count as rows of their own."""
    count, total = int(np.sum(_inside(pit, percent))), pit.size
    test = binomtest(count, total, percent / 100)
    interval = test.proportion_ci(0.95, "exact")
    p_value = float(test.pvalue)
    if replicates is not None:
        # rows share errors: what coverage does the model expect of itself?
        gaps = np.abs(np.mean(_inside(replicates, percent), axis=(1, 2)) - percent / 100)
        own = np.sum(gaps >= abs(count / total - percent / 100) - 1e-12)
        p_value = max(p_value, float((1 + own) / (1 + len(gaps))))
    return Covered(percent, count / total, float(interval.low), float(interval.high), p_value)


def _inside(pit: np.ndarray, percent: int) -> np.ndarray:
    tail = (1 - percent / 100) / 2
    return (pit >= tail) & (pit <= 1 - tail)
