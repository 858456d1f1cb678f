"""The rows of a fit, and how often each counts.

A row of weight w counts as w equal rows: its log likelihood is taken w times. So a row of weight 0 is left out, and
rows with equal inputs and targets are joined in one that has the sum of their weights. Joined rows stand in an order
that depends on what they contain alone. A fit to repeated rows is therefore the fit to weighted ones, to the last bit:
every choice of rows (inducing rows, batches, rows that are held out) is the same for both.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array

from metaprior.estimators.checks import is_number
from metaprior.user_warnings import warn_user

#: The most that a row may count.
MOST_WEIGHT = 1e9
#: Weights whose mean is below this are told of: weights that sum to 1 make all data count as one row.
LEAST_MEAN = 0.1


class Rows(NamedTuple):
    """Inputs, targets, and how often each row counts; None where each counts once."""

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None


def counted_rows(x: np.ndarray, y: np.ndarray, sample_weight: Any = None) -> Rows:
    """Return the rows that count, equal ones joined; where all are different and count once, the rows as they are.

    Cost N D + N log N.
    """
    weight = np.ones(len(x)) if sample_weight is None else checked_weight(sample_weight, len(x))
    if np.any(weight == 0):
        x, y, weight = x[weight > 0], y[weight > 0], weight[weight > 0]
    order, is_first = _grouped(_columns(x, y))
    if np.all(is_first) and np.all(weight == 1):
        return Rows(x, y, None)
    starts = np.flatnonzero(is_first)
    return Rows(x[order[starts]], y[order[starts]], np.add.reduceat(weight[order], starts))


def checked_weight(sample_weight: Any, num_rows: int) -> np.ndarray:
    """Return the weights as numbers, one per row, or raise an error that says what was expected."""
    if is_number(sample_weight):
        sample_weight = np.full(num_rows, sample_weight)
    weight: np.ndarray = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, copy=True, input_name="sample_weight"
    )
    if weight.shape != (num_rows,):
        raise ValueError(f"sample_weight: expected one number per row, ({num_rows},); got the shape {weight.shape}.")
    if np.any(weight < 0) or np.any(weight > MOST_WEIGHT):
        wrong = int(np.argmax((weight < 0) | (weight > MOST_WEIGHT)))
        raise ValueError(
            f"sample_weight: expected numbers from 0 to {MOST_WEIGHT:g}, how often a row counts; row {wrong} has "
            f"{weight[wrong]:g}."
        )
    if not np.any(weight > 0):
        raise ValueError("sample_weight: expected at least one weight above zero; all are zero.")
    mean = float(np.mean(weight[weight > 0]))
    if mean < LEAST_MEAN:
        warn_user(
            f"sample_weight: a weight says how often a row counts, and the mean is {mean:.2g}, so that "
            f"{int(np.sum(weight > 0))} rows count as {np.sum(weight):.2g}. If the weights are only relative, divide "
            "them by their mean."
        )
    return weight


def _columns(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Return columns of numbers that are equal where the values are: inputs, and the ranks of targets."""
    targets = y.reshape(len(y), -1).T
    try:
        ranks = [np.unique(column, return_inverse=True)[1].astype(np.float64) for column in targets]
    except TypeError:  # values of several kinds: no targets that a fit takes
        ranks = [np.arange(len(y), dtype=np.float64)]
    return [*x.T, *ranks]


def _grouped(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return an order in which equal rows stand together, and which rows of it differ from the one before.

    The order is that of sums which equal rows share. Where different rows share one, it is that of the columns.
    """
    sums = _sums(columns)
    order = np.argsort(sums, kind="stable")
    same = sums[order][1:] == sums[order][:-1]
    before, after = order[:-1][same], order[1:][same]
    if not all(np.array_equal(column[before], column[after]) for column in columns):
        order = np.lexsort(columns)
        same = np.all([column[order][1:] == column[order][:-1] for column in columns], axis=0)
    return order, np.concatenate([[True], ~same])


def _sums(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return a number for every row that is the same for equal rows, and for others hardly ever."""
    factors = np.random.default_rng(0).integers(2**63, size=len(columns), dtype=np.uint64) * np.uint64(2)
    sums = np.zeros(len(columns[0]), np.uint64)
    for column, factor in zip(columns, factors + np.uint64(1), strict=True):
        bits = (column + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
        sums += (bits ^ (bits >> np.uint64(29))) * factor  # the low bits of most numbers are zeros
    return sums
