"""The rank that gives a finite sample its coverage.

Of n + 1 exchangeable scores without ties, the last has each rank with probability 1 / (n + 1). So it is at most the
k-th smallest of the other n, k = ceil((n + 1) level), with a probability of at least `level` and at most level +
1 / (n + 1). If k > n, no threshold is high enough and it has to be infinite.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from metaprior.estimators.checks import expect, is_number
from metaprior.user_warnings import warn_user


class TooFewRows(UserWarning):
    """The rows of calibration are too few for the level: nothing can be excluded."""


def check_level(level: Any) -> None:
    """Raise an error unless a level is a probability strictly between 0 and 1."""
    expect("level", level, "a number between 0 and 1, such as 0.9", is_number(level) and 0 < level < 1)


def conformal_rank(num_rows: int, level: float) -> int:
    """Return ceil((n + 1) level), with the level taken as the decimal number that it is written as."""
    return math.ceil((num_rows + 1) * Fraction(str(float(level))))


def fewest_rows(level: float) -> int:
    """Return how many rows a finite threshold needs: the smallest n with ceil((n + 1) level) <= n."""
    exact = Fraction(str(float(level)))
    return math.ceil(exact / (1 - exact))


def threshold(scores: np.ndarray, level: float) -> float:
    """Return the k-th smallest score, k = ceil((n + 1) level); infinity if there are fewer than k."""
    rank = conformal_rank(len(scores), level)
    return float(np.partition(scores, rank - 1)[rank - 1]) if rank <= len(scores) else math.inf


def warn_of_too_few(num_rows: int, level: float, consequence: str) -> None:
    """Warn if no finite threshold has the coverage that was asked for."""
    if num_rows < fewest_rows(level):
        warn_user(
            f"a level of {level:g} needs at least {fewest_rows(level)} rows of calibration; got {num_rows}. "
            f"{consequence}. Give more rows, or ask for a lower level.",
            TooFewRows,
        )


def coverage_interval(num_rows: int, level: float, probability: float) -> tuple[float, float]:
    """Return the central interval of the coverage given the rows of calibration, which is Beta(k, n + 1 - k)."""
    from scipy.stats import beta

    rank = conformal_rank(num_rows, level)
    if rank > num_rows:
        return 1.0, 1.0
    low, high = beta(rank, num_rows + 1 - rank).interval(probability)
    return float(low), float(high)
