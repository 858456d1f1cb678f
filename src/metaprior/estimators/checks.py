"""Checks of what a user gives, and the units of data."""

from typing import Any

import numpy as np


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> bool:
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


def text_columns(X: Any) -> list:
    """Return the names of a frame's columns that hold no numbers."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(dtypes, "items"):
        return []
    return [name for name, dtype in dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]
