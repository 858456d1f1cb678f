"""Checks of what the file of a loop contains, before a loop is made of it.

The file may be damaged, or come from a stranger. Every field is checked for its type, its shape and its range, so a
loop that is loaded can go on.
"""

import reprlib
from collections.abc import Collection
from typing import Any

import numpy as np

from metaprior.estimators.checks import is_whole


def expect_content(name: str, value: object, what: str, holds: bool) -> None:
    """Raise an error that names the field, what was expected of it and, in short, what came, unless it holds."""
    if not holds:
        raise ValueError(f"{name}: expected {what}; got {reprlib.repr(value)}.")


def checked_fields(name: str, value: Any, names: Collection[str]) -> dict[str, Any]:
    """Return a dict with exactly these keys."""
    found = sorted(value) if isinstance(value, dict) else value
    expect_content(name, found, f"the fields {sorted(names)}", found == sorted(names))
    return value


def checked_count(name: str, value: Any, lowest: int = 0, highest: int = 2**63 - 1) -> int:
    """Return a whole number in a range."""
    holds = is_whole(value) and lowest <= value <= highest
    expect_content(name, value, f"a whole number from {lowest} to {highest}", holds)
    return int(value)


def checked_numbers(name: str, value: Any, shape: tuple[int | None, ...], *, gaps: bool = False) -> np.ndarray:
    """Return an array of finite numbers, some of them NaN if there may be `gaps`. None stands for any length."""
    array = _checked_array(name, value, "f", "numbers", shape).astype(np.float64)
    holds = np.isfinite(array) | (np.isnan(array) if gaps else False)
    expect_content(name, array, f"finite numbers{' or NaN' if gaps else ''}", bool(np.all(holds)))
    return array


def checked_indices(name: str, value: Any, n_values: int, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return an array of whole numbers from 0 to `n_values - 1`."""
    array = _checked_array(name, value, "iu", "whole numbers", shape)
    inside = bool(np.all((array >= 0) & (array < n_values)))
    expect_content(name, array, f"whole numbers from 0 to {n_values - 1}", inside)
    return array.astype(int)


def checked_tuple(name: str, value: Any, types: type | tuple[type, ...], length: int | None = None) -> tuple[Any, ...]:
    """Return a tuple of values of some types."""
    many = isinstance(value, tuple) and (length is None or len(value) == length)
    holds = many and all(isinstance(item, types) and not isinstance(item, bool) for item in value)
    expect_content(name, value, f"{'any number of' if length is None else length} values of a given type", holds)
    return value


def _checked_array(name: str, value: Any, kinds: str, what: str, shape: tuple[int | None, ...]) -> np.ndarray:
    wanted = f"an array of {what} of shape {tuple('any' if n is None else n for n in shape)}"
    expect_content(name, value, wanted, isinstance(value, np.ndarray) and value.dtype.kind in kinds)
    same = value.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, value.shape, strict=True))
    expect_content(name, f"shape {value.shape}", wanted, same)
    return value
