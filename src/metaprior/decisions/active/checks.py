"""Checks of the arguments of a pool loop."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array

from metaprior.estimators.checks import expect


def checked_targets(name: str, y: Any, *, classes: bool) -> np.ndarray:
    """Return a copy of class labels, or of finite numbers, [n] or [n, targets]."""
    targets = np.atleast_1d(np.array(y))
    if classes:
        expect(name, targets.shape, "class labels in one dimension", targets.ndim == 1)
        expect(name, y, "class labels, all texts or all finite numbers", _are_labels(targets))
        return targets
    try:
        targets = targets.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers; got {y!r}.") from error
    right = targets.ndim in (1, 2) and bool(np.all(np.isfinite(targets)))
    expect(name, y, "finite numbers, [n] or [n, targets]", right)
    return targets


def _are_labels(values: np.ndarray) -> bool:
    """Return whether all values are texts, or all are finite numbers: others cannot be told apart or sorted."""
    if values.dtype.kind == "O":
        return all(isinstance(value, str) for value in values)
    return values.dtype.kind in "biuUS" or (values.dtype.kind == "f" and bool(np.all(np.isfinite(values))))


def expect_alike(call: str, before: np.ndarray | None, targets: np.ndarray) -> None:
    """Raise an error if answers have another shape than earlier ones, or if one is a number and the other a text."""
    if before is None:
        return
    if before.shape[1:] != targets.shape[1:]:
        raise ValueError(f"{call}: expected answers of shape {before.shape[1:]} as before; got {targets.shape[1:]}.")
    texts = before.dtype.kind in "OUS"
    if texts != (targets.dtype.kind in "OUS"):
        raise ValueError(f"{call}: expected {'texts' if texts else 'numbers'} as before; got {targets[:3].tolist()}.")


def checked_pair(name: str, pair: Any, n_columns: int, *, classes: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Return inputs with `n_columns` columns and their targets, or None if there are none."""
    if pair is None:
        return None
    expect(name, pair, "a tuple (X, y)", isinstance(pair, tuple) and len(pair) == 2)
    inputs = check_array(pair[0], dtype=np.float64, input_name=name, copy=True)
    targets = checked_targets(name, pair[1], classes=classes)
    if inputs.shape[1] != n_columns or len(targets) != len(inputs):
        raise ValueError(
            f"{name}: expected (X, y) with {n_columns} columns, like the pool, and one target per row; got shapes "
            f"{inputs.shape} and {targets.shape}."
        )
    return inputs, targets


def checked_rows(call: str, rows: Any, free: np.ndarray) -> list[int]:
    """Return rows of the pool, or raise an error if any is repeated, unknown, answered or skipped."""
    found = np.atleast_1d(np.asarray(rows))
    if not found.size:
        raise ValueError(f"{call}: no question is pending; ask first, or give rows.")
    whole = found.ndim == 1 and np.issubdtype(found.dtype, np.integer)
    if not (whole and np.all(np.isin(found, free)) and len(np.unique(found)) == found.size):
        raise ValueError(
            f"{call}: expected numbers of rows of the pool, each once, that are neither answered nor skipped; got "
            f"{found.tolist()}."
        )
    return found.tolist()


def checked_oracle(oracle: Any, n_rows: int) -> Callable[[np.ndarray, np.ndarray], Any]:
    """Return the oracle as a function of rows and their inputs."""
    if callable(oracle):
        return lambda rows, X: oracle(X)
    targets = np.asarray(oracle)
    if targets.ndim == 0 or len(targets) != n_rows:
        raise ValueError(f"oracle: expected {n_rows} targets, one per row of the pool; got shape {targets.shape}.")
    return lambda rows, X: targets[rows]
