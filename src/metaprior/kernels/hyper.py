"""Hyper-parameters of kernels: each is declared once, and everything else follows from the declaration.

A class declares `alpha: Hyper = hyper(1.0)`. It then has an unconstrained leaf `log_alpha`, which training changes, a
property `alpha` with the natural value, and a checked argument `alpha` of its constructor. `fixed`, `bounds`, the
conversion of units, `repr`, `get_params` and `set_params` work with it too (`metaprior.kernels.hyper_kernel`).
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from metaprior.types import Leaf

S = TypeVar("S", covariant=True)
T = TypeVar("T", contravariant=True)

#: A natural value: a positive number, or one per dimension.
Values = float | int | Sequence[float] | np.ndarray
#: One end of a hyper-parameter's bounds: a number, or one per dimension.
End = float | tuple[float, ...]
#: Bounds in the form that the constructor takes.
BoundsByName = Mapping[str, tuple[Any, Any]] | None

if TYPE_CHECKING:

    class Converted(Generic[S, T]):
        """For type checkers: a field that the constructor takes as a T and that is read as an S."""

        def __get__(self, instance: object, owner: type) -> S: ...  # noqa: D105
        def __set__(self, instance: object, value: T) -> None: ...  # noqa: D105

    Hyper = Converted[Array, Values | None]
    Names = Converted[tuple[str, ...], Sequence[str]]
    Bounds = Converted[tuple[tuple[str, End, End], ...], BoundsByName]
else:
    Hyper = Leaf | None
    Names = tuple[str, ...]
    Bounds = tuple[tuple[str, End, End], ...]


class Log(NamedTuple):
    """The logarithm of a value, or None if it is not known; constructors accept it unchanged, to copy a kernel.

    `unset` means that the user gave no value, so it has its `start`, in standardised units.
    """

    leaf: Leaf | None
    unset: bool


class Declaration(NamedTuple):
    """The declaration of a hyper-parameter; see `hyper`."""

    default: Any
    per_dimension: bool
    unit: int
    start: float | None
    doc: str

    def log(self, kernel: str, name: str, value: Any) -> Log:
        """Check a natural value and return its logarithm."""
        if isinstance(value, Log):
            return value
        if value is None and self.default is None:
            return Log(None, False) if self.start is None else Log(np.asarray(np.log(self.start)), True)
        try:
            array = np.asarray(value, dtype=np.float64)
            is_valid = array.ndim <= self.per_dimension and np.all(np.isfinite(array) & (array > 0))
        except (TypeError, ValueError):
            is_valid = False
        if not is_valid:
            vector = ", or one such number per dimension" if self.per_dimension else ""
            raise ValueError(f"{kernel}: {name} must be a positive finite number{vector}; got {value!r}.")
        return Log(np.asarray(np.log(array)), False)

    def parameter(self, name: str) -> inspect.Parameter:
        """Return the argument of the constructor."""
        values = Values if self.per_dimension else float | int
        annotation = values | None if self.default is None else values
        return argument(name, self.default, annotation)

    def natural_value(self, name: str) -> property:
        """Return the property that reads the natural value."""

        def value(kernel: Any) -> Array:
            leaf = kernel.leaf(name)
            if leaf is None:
                raise ValueError(
                    f"{type(kernel).__name__}: the {name} is not known yet. Give `{name}=`, or fit an estimator, which "
                    "finds a starting value in the data."
                )
            return jnp.exp(leaf)

        return property(value, doc=self.doc)


def argument(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    """Return an argument of a constructor; it is required if the default is MISSING."""
    kind, none = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    return inspect.Parameter(name, kind, default=none if default is MISSING else default, annotation=annotation)


def hyper(
    default: Any = MISSING,
    *,
    per_dimension: bool = False,
    unit: int = 0,
    start: float | None = None,
    doc: str = "",
) -> Any:
    """Declare a positive hyper-parameter: `name: Hyper = hyper(...)` in the body of a `HyperKernel`.

    Parameters
    ----------
    default : float or None, optional
        The value if the user gives none; without a default the constructor requires one. None means that the value
        is `start` or, if there is no `start`, comes from the data.
    per_dimension : bool, default=False
        Whether there may be one value per input dimension.
    unit : int, default=0
        The power of the unit of the inputs in the unit of the value: 1 for a length, -2 for the variance of a slope, 0
        for a pure number. Values with a unit are converted when the inputs are standardised.
    start : float, optional
        With `default=None`: the value in standardised units.
    doc : str, optional
        What the hyper-parameter means.
    """
    return Declaration(default, per_dimension, unit, start, doc)


def checked_names(kernel: str, known: Sequence[str], fixed: Sequence[str]) -> tuple[str, ...]:
    """Return the names in `fixed` as a tuple; each must be a hyper-parameter."""
    names = (fixed,) if isinstance(fixed, str) else tuple(fixed)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"{kernel}: expected the names in fixed to be among {list(known)}; got {unknown}.")
    return names


def checked_bounds(kernel: str, known: Sequence[str], bounds: Any) -> tuple[tuple[str, End, End], ...]:
    """Return `bounds` as a tuple of (name, lowest, highest), which is static and hashable."""
    if not isinstance(bounds, Mapping | None):
        raise ValueError(f"{kernel}: bounds must be a dict such as {{{known[0]!r}: (0.1, 10.0)}}; got {bounds!r}.")
    checked = []
    for name, pair in (bounds or {}).items():
        if name not in known:
            raise ValueError(f"{kernel}: expected the names in bounds to be among {list(known)}; got {name!r}.")
        try:
            low, high = (np.asarray(end, np.float64) for end in pair)
            is_valid = bool(np.all((low > 0) & (low < high)))
        except (TypeError, ValueError):
            is_valid = False
        if not is_valid:
            raise ValueError(f"{kernel}: bounds of {name} must be a pair 0 < lowest < highest; got {pair!r}.")
        checked.append((name, plain(low), plain(high)))
    return tuple(checked)


def plain(values: np.ndarray) -> End:
    """Return an array as a number or a tuple of numbers."""
    listed = values.tolist()
    return tuple(listed) if isinstance(listed, list) else listed


def natural(leaf: Any) -> Any:
    """Return the natural value of a leaf as plain numbers, or of a traced leaf as a traced array; None stays None."""
    if isinstance(leaf, jax.core.Tracer):
        return jnp.exp(leaf)
    if not isinstance(leaf, np.ndarray | jax.Array):
        return leaf
    array = np.asarray(leaf)
    return np.reshape([_shortest(one) for one in array.ravel()], array.shape).tolist()


def _shortest(leaf: np.floating) -> float:
    """Return the number with the fewest digits whose logarithm is the leaf, so that the constructor reproduces it."""
    value = np.exp(np.float64(leaf))
    digits = [float(f"{value:.{count}g}") for count in range(1, 18)]
    with np.errstate(divide="ignore"):
        for short in (*digits, np.nextafter(value, 0), np.nextafter(value, np.inf)):
            if np.log(short).astype(leaf.dtype) == leaf:
                return float(short)
    return float(value)
