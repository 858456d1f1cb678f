"""What a class declares of its fields, checked when an object is rebuilt from a file.

The check follows the annotations, so a new class needs nothing of its own. The parts of a model (equinox modules) hold
numbers that are finite and within a range in which their squares are finite, too. Shapes are not checked here, because
a stacked model has one more axis everywhere. Whether all shapes fit together is decided by a trial of the prediction
(`estimators/restored.py`).
"""

import collections.abc
import functools
import math
import types
import typing
from typing import Any

import equinox as eqx
import jax
import jaxtyping
import numpy as np

#: The largest absolute value of a number of a model, and of a logarithm, which is exponentiated and squared.
MOST, MOST_LOG = 1e100, 300.0


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def check_fields(cls: type, fields: dict[str, Any]) -> None:
    """Raise an error unless the fields are what their class declares."""
    hints = _hints(cls)
    for name, value in fields.items():
        # None is a part that another model holds, as in the shared parts of several tasks
        is_elsewhere = value is None and issubclass(cls, eqx.Module)
        if name in hints and not is_elsewhere and not fits(value, hints[name]):
            raise ValueError(f"{cls.__name__}.{name} cannot be {_shown(value)}")
        if issubclass(cls, eqx.Module):
            _check_numbers(f"{cls.__name__}.{name}", value, is_log=name.startswith("log_"))
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{cls.__name__}.{name} cannot be {value!r}")


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is what an annotation says."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and _items_fit(value, arguments)
    if origin in (list, collections.abc.Sequence):
        return isinstance(value, list | tuple) and all(fits(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(item, arguments[1]) for item in value.values())
    if origin is collections.abc.Callable:
        return callable(value)
    return _is_one(value, hint)


def _items_fit(value: tuple[Any, ...], arguments: tuple[Any, ...]) -> bool:
    if len(arguments) == 2 and arguments[1] is ...:
        return all(fits(item, arguments[0]) for item in value)
    return len(value) == len(arguments) and all(map(fits, value, arguments))


def _is_one(value: Any, hint: Any) -> bool:
    """Return whether a value is of a class, a number of a kind, or an array."""
    if hint is None or hint is types.NoneType:
        return value is None
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint in (int, float):
        kinds = int | np.integer if hint is int else int | float | np.integer | np.floating
        return isinstance(value, kinds) and not isinstance(value, bool)
    if hint in (np.ndarray, jax.Array):
        return isinstance(value, np.ndarray | np.generic)
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return isinstance(value, np.ndarray | np.generic) and value.dtype.name in hint.dtypes
    return isinstance(value, hint)


def _check_numbers(name: str, value: Any, *, is_log: bool) -> None:
    """Raise an error if a number of a part of a model cannot be one; parts of it have been checked before."""
    if isinstance(value, tuple | list):
        for item in value:
            _check_numbers(name, item, is_log=is_log)
    elif isinstance(value, np.ndarray | np.generic):
        _check_array(name, np.asarray(value), MOST_LOG if is_log else MOST)
    elif isinstance(value, int | float) and not value >= 0:
        # settings of a part are counts, sizes, places and scales; a bound may be infinite
        raise ValueError(f"{name} cannot be {value!r}")


def _check_array(name: str, array: np.ndarray, most: float) -> None:
    if array.dtype.kind != "f" or not _is_within(array, most):
        raise ValueError(f"{name} has numbers that are not finite, or beyond {most:g}")


def _is_within(array: np.ndarray, most: float) -> bool:
    """Return whether all numbers are finite and not too large, without a copy of the array."""
    if not array.size:
        return True
    lowest, highest = float(array.min()), float(array.max())
    return math.isfinite(lowest) and math.isfinite(highest) and -most <= lowest and highest <= most


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        return f"an array of {value.dtype}"
    return f"{value!r:.60}" if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
