"""Checks of what a user gives, and the units of data."""

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np


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


def standard_units(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of every column; 1 for columns that do not vary."""
    offset, scale = columns.mean(axis=0), columns.std(axis=0)
    varies = scale > 1e-12 * np.maximum(np.abs(columns).max(axis=0), 1e-300)
    return offset, np.where(varies, scale, 1.0)


def text_columns(X: Any) -> list[Any]:
    """Return the names of a frame's columns that hold no numbers."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(dtypes, "items"):
        return []
    return [name for name, dtype in dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]


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
