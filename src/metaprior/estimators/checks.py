"""Checks of what a user gives, and the units of data."""

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np

#: Limits of the numbers of a fit: how large they may be, and how far apart those of a column must be at the least if
#: they differ. Then the squares of numbers, and of those times what a prediction may be far away, are floats.
LARGEST, LEAST_SPREAD = 1e100, 1e-100
#: The distance from the data, in standard deviations, beyond which all of them are one point to float64.
FARTHEST = 1e16
#: What rounding can make of a constant, and differences from which on numbers are summed as they are, relative to size.
ROUNDING, NEARLY_EQUAL = 4 * float(np.finfo(np.float64).eps), 1e-3


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float | np.integer | np.floating) and bool(np.isfinite(value))


def expect(name: str, value: object, what: str, holds: bool) -> None:
    """Raise an error that names the parameter, what was expected of it and what came, unless it holds."""
    if not holds:
        raise ValueError(f"{name}: expected {what}; got {value!r}.")


def standard_units(
    columns: np.ndarray, name: str = "X", weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of every column; at least 1 for columns that do not vary.

    `weight` says how often a row counts; None: once.

    A column that varies by no more than rounding can make of a constant does not vary. Numbers whose squares, or the
    squares of whose differences, are no floats are refused.
    """
    size = np.abs(columns).max(axis=0)
    _expect_each(name, size, f"numbers of at most {LARGEST:g} in size; divide", size <= LARGEST)
    spread, rounding = np.ptp(columns, axis=0), ROUNDING * size
    is_seen = (spread > LEAST_SPREAD) | (spread <= rounding)
    _expect_each(name, spread, f"numbers that differ by more than {LEAST_SPREAD:g}, if at all; multiply", is_seen)
    start = np.where(spread < NEARLY_EQUAL * size, columns[0], 0.0)  # differences of nearly equal numbers are exact
    mean, scale = _moments(columns - start, weight)
    offset = start + mean
    return offset, np.where(scale > rounding, scale, np.maximum(1.0, rounding))


def _moments(columns: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of every column, of rows that count `weight` times."""
    if weight is None:
        return columns.mean(axis=0), columns.std(axis=0)
    part = weight / np.sum(weight)
    mean = part @ columns
    return mean, np.sqrt(part @ (columns - mean) ** 2)


def _expect_each(name: str, found: np.ndarray, what: str, holds: np.ndarray) -> None:
    """Raise an error that names the first column for which something does not hold, and what was found there."""
    if not np.all(holds):
        first = int(np.argmin(holds))
        raise ValueError(f"{name}: expected {what} them by a constant first; column {first} has {found[first]:g}.")


def in_units(values: np.ndarray, offset: np.ndarray, scale: np.ndarray, name: str) -> np.ndarray:
    """Return (values - offset) / scale, or refuse values from which the data of the fit cannot be told apart."""
    with np.errstate(over="ignore"):
        found = (values - offset) / scale
    is_far = np.abs(found) > FARTHEST
    if np.any(is_far):
        row, column = np.argwhere(is_far)[0].tolist()
        raise ValueError(
            f"{name}: expected numbers within {FARTHEST:g} standard deviations of those of the fit, from where float64 "
            f"can tell these apart; row {row}, column {column} has {values[row, column]:g}, and those of the fit are "
            f"about {offset[column]:g}, with a standard deviation of {scale[column]:g}. Check the units, or leave the "
            "row out."
        )
    return found


def refuse_lost_digits(name: str, given: Any, floats: np.ndarray) -> None:
    """Raise where the whole numbers of a column differ, and the floats that are nearest to them do not."""
    whole = np.asarray(given)
    if whole.dtype.kind not in "iu" or whole.shape != floats.shape or np.abs(floats).max() < 2.0**53:
        return
    whole, floats = whole.reshape(len(whole), -1), floats.reshape(len(floats), -1)
    is_lost = (floats.min(axis=0) == floats.max(axis=0)) & (whole.min(axis=0) < whole.max(axis=0))
    if np.any(is_lost):
        raise ValueError(
            f"{name}: expected numbers that are still different as float64, which has 16 digits; those of column "
            f"{int(np.argmax(is_lost))} differ in later digits alone. Subtract a constant first."
        )


def expect_whole(name: str, value: object, lowest: int) -> None:
    """Raise unless the parameter is a whole number of at least `lowest`."""
    expect(name, value, f"a whole number of at least {lowest}", is_whole(value) and int(value) >= lowest)


def expect_auto_or_whole(name: str, value: object) -> None:
    """Raise unless the parameter is "auto" or a whole number of at least 1."""
    holds = (isinstance(value, str) and value == "auto") or (is_whole(value) and int(value) >= 1)
    expect(name, value, "'auto' or a whole number of at least 1", holds)


def expect_one_of(name: str, value: object, known: Sequence[str]) -> None:
    """Raise unless the parameter is one of some words."""
    expect(name, value, f"one of {tuple(known)}", isinstance(value, str) and value in known)


def row_labels(X: Any) -> Any:
    """Return the index of a pandas data frame; None for anything else (the `index` of a list is a method)."""
    return X.index if hasattr(X, "iloc") else None
