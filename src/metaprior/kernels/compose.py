"""Kernels made of kernels: sums, products, scalings, and kernels on some columns. Also kernels from a function."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.base import Kernel
from metaprior.kernels.hyper import Hyper, hyper
from metaprior.kernels.hyper_kernel import HyperKernel
from metaprior.types import Leaf


class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def num_normals(self, num_dims: int) -> int:
        """Return the sum of the counts of both kernels."""
        return self.left.num_normals(num_dims) + self.right.num_normals(num_dims)

    def both_features(self, a: Leaf, normals: Leaf) -> tuple[Array, Array]:
        """Return independent features of both kernels."""
        split = self.left.num_normals(a.shape[1])
        return self.left.features(a, normals[:split]), self.right.features(a, normals[split:])


class Sum(_Pair):
    """k1 + k2."""

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the sum."""
        return self.left(a, b) + self.right(a, b)

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return the sum."""
        return self.left.diagonal(a) + self.right.diagonal(a)

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the sum of the features; they are independent with zero mean, so the covariances add."""
        left, right = self.both_features(a, normals)
        return left + right

    def __repr__(self) -> str:
        """Show the sum."""
        return f"{self.left!r} + {_in_brackets(self.right, Sum)}"


class Product(_Pair):
    """k1 * k2."""

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the product."""
        return self.left(a, b) * self.right(a, b)

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return the product."""
        return self.left.diagonal(a) * self.right.diagonal(a)

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the product of the features; they are independent, so the covariances multiply."""
        left, right = self.both_features(a, normals)
        return left * right

    def __repr__(self) -> str:
        """Show the product."""
        return f"{_in_brackets(self.left, Sum)} * {_in_brackets(self.right, Sum, Product, Scaled)}"


class Scaled(HyperKernel):
    """scale * k."""

    inner: Kernel
    scale: Hyper = hyper(doc="The factor that multiplies the kernel.")

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return scale * k(a, b)."""
        return self.scale * self.inner(a, b)

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return scale * k(a, a)."""
        return self.scale * self.inner.diagonal(a)

    def num_normals(self, num_dims: int) -> int:
        """Return the count of the inner kernel."""
        return self.inner.num_normals(num_dims)

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the features of the inner kernel times sqrt(scale)."""
        return jnp.sqrt(self.scale) * self.inner.features(a, normals)

    def __repr__(self) -> str:
        """Show a number times a kernel, or the call of the constructor if there are `fixed` or `bounds`."""
        if self.fixed or self.bounds:
            return super().__repr__()
        return f"{self.get_params(deep=False)['scale']} * {_in_brackets(self.inner, Sum, Product, Scaled)}"


class ActiveDims(Kernel):
    """A kernel on some of the input columns."""

    inner: Kernel
    dims: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, inner: Kernel, dims: tuple[int, ...]) -> None:
        """Take a kernel and the columns on which it acts."""
        if not dims or any(not isinstance(d, int | np.integer) or d < 0 for d in dims):
            raise ValueError(f"ActiveDims: dims must be column numbers (0, 1, ...); got {dims!r}.")
        self.inner, self.dims = inner, tuple(int(d) for d in dims)

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return k on the columns."""
        return self.inner(a[:, list(self.dims)], b[:, list(self.dims)])

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return k on the columns."""
        return self.inner.diagonal(a[:, list(self.dims)])

    def num_normals(self, num_dims: int) -> int:
        """Return the count of the inner kernel on its columns."""
        return self.inner.num_normals(len(self.dims))

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the features of the inner kernel on its columns."""
        return self.inner.features(a[:, list(self.dims)], normals)

    def with_periods(self, periods: np.ndarray) -> "ActiveDims":
        """Return the kernel with unknown periods filled in from those of its columns."""
        return self._replaced({"inner": self.inner.with_periods(periods[list(self.dims)])})

    def bound_to(self, num_dims: int) -> "ActiveDims":
        """Return the kernel with hyper-parameters spread over its own columns, which must exist."""
        if max(self.dims) >= num_dims:
            raise ValueError(
                f"ActiveDims: expected columns from 0 to {num_dims - 1}, as the input has {num_dims}; got {self.dims}."
            )
        return self._replaced({"inner": self.inner.bound_to(len(self.dims))})

    def standardised(self, scale: np.ndarray) -> "ActiveDims":
        """Return the kernel converted with the scales of its columns."""
        return self._replaced({"inner": self.inner.standardised(np.asarray(scale)[list(self.dims)])})

    def unstandardised(self, scale: np.ndarray) -> "ActiveDims":
        """Return the kernel converted back with the scales of its columns."""
        return self._replaced({"inner": self.inner.unstandardised(np.asarray(scale)[list(self.dims)])})

    def __repr__(self) -> str:
        """Show the kernel and its columns."""
        return f"{_in_brackets(self.inner, Sum, Product, Scaled)}.on({', '.join(map(str, self.dims))})"


class Custom(Kernel):
    """A kernel from any function k(A, B) -> matrix, without hyper-parameters and random features."""

    function: Callable[[Leaf, Leaf], Array] = eqx.field(static=True)

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the matrix that the function returns."""
        return self.function(a, b)

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return the function at each point."""
        return jax.vmap(lambda row: self.function(row[None], row[None])[0, 0])(a)

    def num_normals(self, num_dims: int) -> int:
        """Raise an error, because a custom kernel has no features."""
        raise ValueError(
            "Custom: a kernel given as a function has no random features, so conditional='pathwise' cannot use "
            "it. Use conditional='diag', 'fitc' or 'full' instead."
        )

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Raise an error, because a custom kernel has no features."""
        self.num_normals(a.shape[1])
        raise AssertionError("unreachable")


def additive_parts(kernel: Kernel) -> list[Kernel]:
    """Return kernels that add up to this one: sums are taken apart, and what multiplies them is multiplied out."""
    if isinstance(kernel, Sum):
        return [*additive_parts(kernel.left), *additive_parts(kernel.right)]
    if isinstance(kernel, Product):
        return [Product(a, b) for a in additive_parts(kernel.left) for b in additive_parts(kernel.right)]
    if isinstance(kernel, Scaled | ActiveDims):
        parts = additive_parts(kernel.inner)
        return [kernel] if len(parts) == 1 else [kernel._replaced({"inner": part}) for part in parts]
    return [kernel]


def _in_brackets(kernel: Kernel, *kinds: type[Kernel]) -> str:
    """Return how a kernel is shown inside another: in brackets if it is one of these kinds."""
    return f"({kernel!r})" if isinstance(kernel, kinds) else repr(kernel)
