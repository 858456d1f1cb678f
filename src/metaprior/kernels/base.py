"""What a kernel is: a cross-matrix, a diagonal, and random features; the base class owns +, * and the hyper-parameters.

A kernel of this library is a function of two sets of points. Beside its matrix it can say *random features*
psi(x) with zero mean and E[psi(x) psi(x')] = k(x, x'). Because independent zero-mean features add to the
features of a sum and multiply to the features of a product, every composition inherits them, and the GP over
weight codes, whose kernel is a product over blocks, gets draws in which the blocks stay apart (`pathwise`).
"""

import abc
import copy
import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.types import Leaf

H = TypeVar("H", bound="HyperKernel")
Hyper = float | int | Sequence[float] | np.ndarray | None
Bound = float | tuple[float, ...]

#: Dimensions up to which distances are taken by differences; beyond, one product of matrices is much quicker.
FEW_DIMS = 16
#: Pairs of points from which on the product is quicker for any number of dimensions (measured, with the gradient).
MANY_PAIRS = 10_000


class Kernel(eqx.Module):
    """A positive semi-definite function of two points.

    Leaves are unconstrained (`log_lengthscale`); natural values are properties (`lengthscale`). The keyword
    `fixed` names hyper-parameters that training leaves alone, `bounds` maps a name to its (lowest, highest) value.
    """

    @abc.abstractmethod
    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the cross-matrix k(a, b)."""

    @abc.abstractmethod
    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return k(a_n, a_n)."""

    @abc.abstractmethod
    def num_normals(self, num_dims: int) -> int:
        """Return how many standard normals one random feature takes."""

    @abc.abstractmethod
    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return F random features, zero-mean, each with E[psi(x) psi(x')] = k(x, x') over the normals."""

    @abc.abstractmethod
    def bound_to(self, num_dims: int) -> "Kernel":
        """Return the kernel with its hyper-parameters spread over `num_dims` dimensions."""

    @abc.abstractmethod
    def standardised(self, scale: np.ndarray) -> "Kernel":
        """Return the kernel for inputs divided by `scale`: what the user gave in data units is converted."""

    def unstandardised(self, scale: np.ndarray) -> "Kernel":
        """Return the kernel in data units again: the inverse of `standardised`."""
        return self.standardised(1.0 / np.asarray(scale))

    def release_times(self) -> "Kernel":
        """Return a tree like the kernel: the part of training (0 to 1) each leaf is held for; inf if fixed."""
        return dataclasses.replace(self, **{name: child.release_times() for name, child in self.children().items()})

    def projected(self) -> "Kernel":
        """Return the kernel with every bounded hyper-parameter moved inside its bounds."""
        return dataclasses.replace(self, **{name: child.projected() for name, child in self.children().items()})

    def unknown_periods(self) -> bool:
        """Return whether a period is left for the data to say."""
        return any(child.unknown_periods() for child in self.children().values())

    def with_periods(self, periods: np.ndarray) -> "Kernel":
        """Return the kernel with unknown periods filled in from one value an input column."""
        return dataclasses.replace(
            self, **{name: child.with_periods(periods) for name, child in self.children().items()}
        )

    def children(self) -> dict[str, "Kernel"]:
        """Return the kernels this one is made of, by field name."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {name: v for name, v in values.items() if isinstance(v, Kernel)}

    def __add__(self, other: "Kernel | float | int") -> "Kernel":
        """Return the sum; a number stands for a constant kernel."""
        from metaprior.kernels.compose import Sum
        from metaprior.kernels.constant import Constant

        return Sum(self, other if isinstance(other, Kernel) else Constant(other))

    def __mul__(self, other: "Kernel | float | int") -> "Kernel":
        """Return the product with a kernel, or the kernel scaled by a positive number."""
        from metaprior.kernels.compose import Product, Scaled

        return Product(self, other) if isinstance(other, Kernel) else Scaled(self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def on(self, *dims: int) -> "Kernel":
        """Return the kernel acting on the named input columns only."""
        from metaprior.kernels.compose import ActiveDims

        return ActiveDims(self, dims)


class HyperKernel(Kernel):
    """A kernel with hyper-parameters of its own: fields called `log_<name>`, each natural value a property `<name>`."""

    fixed: tuple[str, ...] = eqx.field(static=True)
    bounds: tuple[tuple[str, Bound, Bound], ...] = eqx.field(static=True)

    def hypers(self) -> tuple[str, ...]:
        """Return the names of the hyper-parameters."""
        return tuple(f.name.removeprefix("log_") for f in dataclasses.fields(self) if f.name.startswith("log_"))

    def release_times(self: H) -> H:
        """Return 0 for every hyper-parameter; inf where it is fixed."""
        times = {n: np.inf if n in self.fixed else 0.0 for n in self.hypers()}
        return self.with_leaves({n: np.asarray(times[n], np.float32) for n in self.hypers()})

    def projected(self: H) -> H:
        """Clip the bounded leaves."""
        limits = {name: (lo, hi) for name, lo, hi in self.bounds}
        return self.with_leaves(
            {n: jnp.clip(getattr(self, f"log_{n}"), np.log(lo), np.log(hi)) for n, (lo, hi) in limits.items()}
        )

    def with_leaves(self: H, leaves: dict) -> H:
        """Return a copy with some unconstrained leaves replaced (None leaves stay None)."""
        given = {n: v for n, v in leaves.items() if getattr(self, f"log_{n}") is not None}
        names = tuple(given)
        return (
            eqx.tree_at(lambda k: [getattr(k, f"log_{n}") for n in names], self, [given[n] for n in names])
            if names
            else self
        )

    def rescaled(self: H, name: str, log_factor: np.ndarray | float, *, leaf: bool = True) -> H:
        """Return the kernel with the bounds of a hyper-parameter, and its value unless told, times exp(log_factor)."""
        value = getattr(self, f"log_{name}")
        moved = copy.copy(self.with_leaves({name: value + log_factor}) if leaf else self)

        def times(end: Bound) -> Bound:
            product = (np.asarray(end) * np.exp(log_factor)).tolist()
            return tuple(product) if isinstance(product, list) else product

        bounds = tuple((n, times(lo), times(hi)) if n == name else (n, lo, hi) for n, lo, hi in self.bounds)
        object.__setattr__(moved, "bounds", bounds)  # a static field: no leaf for tree_at
        return moved

    def bound_to(self: H, num_dims: int) -> H:
        """Spread scalar ARD hyper-parameters over the dimensions; check the length of given vectors."""
        return self.with_leaves({n: self._spread(n, num_dims) for n in self.per_dimension()})

    def with_periods(self, periods: np.ndarray) -> Kernel:
        """Most kernels have no period."""
        return self

    def per_dimension(self) -> tuple[str, ...]:
        """Return the names of the hyper-parameters with one value a dimension."""
        return ()

    def standardised(self: H, scale: np.ndarray) -> H:
        """Most kernels' hyper-parameters have no unit of length."""
        return self

    def _spread(self, name: str, num_dims: int) -> Leaf | None:
        leaf = getattr(self, f"log_{name}")
        if leaf is None:
            return None
        if np.ndim(leaf) == 1 and np.shape(leaf)[0] not in (1, num_dims):
            raise ValueError(
                f"{type(self).__name__}: {name} has {np.shape(leaf)[0]} values but acts on {num_dims} dimensions; "
                f"give one value, or {num_dims} of them."
            )
        if isinstance(leaf, jax.Array):  # perhaps traced
            return jnp.broadcast_to(leaf, (num_dims,))
        return np.broadcast_to(np.asarray(leaf), (num_dims,)).copy()

    def __repr__(self) -> str:
        """Show natural values, as the constructor takes them."""
        shown = []
        for name in self.hypers():
            leaf = getattr(self, f"log_{name}")
            if leaf is None or not isinstance(leaf, np.ndarray | jax.Array) or isinstance(leaf, jax.core.Tracer):
                continue
            shown.append(f"{name}={np.array2string(np.exp(np.asarray(leaf)), precision=3, separator=', ')}")
        return f"{type(self).__name__}({', '.join(shown)})"


def log_positive(kernel: str, name: str, value: Hyper) -> np.ndarray | None:
    """Check a natural value (a positive number or vector) and return its logarithm."""
    if value is None:
        return None
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or not np.all(np.isfinite(array)) or np.any(array <= 0):
        raise ValueError(f"{kernel}: {name} must be a positive finite number, or a vector of them; got {value!r}.")
    return np.asarray(np.log(array))


def checked_names(kernel: str, known: tuple[str, ...], fixed: Sequence[str]) -> tuple[str, ...]:
    """Check the names in `fixed`."""
    names = (fixed,) if isinstance(fixed, str) else tuple(fixed)
    unknown = [n for n in names if n not in known]
    if unknown:
        raise ValueError(f"{kernel}: fixed names {unknown}, which it has not; it has {list(known)}.")
    return names


def checked_bounds(
    kernel: str, known: tuple[str, ...], bounds: dict[str, tuple[float, float]] | None
) -> tuple[tuple[str, float, float], ...]:
    """Check `bounds` and return them as a static tuple."""
    out = []
    for name, pair in (bounds or {}).items():
        if name not in known:
            raise ValueError(f"{kernel}: bounds for {name!r}, which it has not; it has {list(known)}.")
        lo, hi = pair
        if not 0 < lo < hi:
            raise ValueError(f"{kernel}: bounds of {name} must be 0 < lowest < highest; got {pair!r}.")
        out.append((name, float(lo), float(hi)))
    return tuple(out)


def squared_distance(
    a: Float[Leaf, "N D"], b: Float[Leaf, "M D"], lengthscale: Float[Leaf, "*d"]
) -> Float[Array, "N M"]:
    """Return |(a_n - b_m) / lengthscale|^2: by differences in few dimensions, by the expansion of the square in many.

    Points that coincide have distance 0 whatever the lengthscale: differences are taken before they are scaled (a
    compiler may fuse a * scale - b * scale to something that is not 0), and of the expansion what lies below its own
    rounding is taken for 0.
    """
    scale = jnp.broadcast_to(1 / lengthscale, (a.shape[1],))
    if a.shape[1] <= FEW_DIMS and a.shape[0] * b.shape[0] < MANY_PAIRS:
        # the dimensions first: rows of the result are then computed side by side, and one dimension compiles as many do
        return jnp.sum(((a.T[:, :, None] - b.T[:, None, :]) * scale[:, None, None]) ** 2, axis=0)
    a, b = a * scale, b * scale
    norms = jnp.sum(a * a, 1)[:, None] + jnp.sum(b * b, 1)[None, :]
    r2 = norms - 2 * a @ b.T
    return jnp.where(r2 > 8 * jnp.finfo(r2.dtype).eps * norms, r2, 0)
