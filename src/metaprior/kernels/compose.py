"""Kernels made of kernels: sums, products, scalings, a choice of dimensions, and any matrix-valued function."""

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
        """Return the count of both kernels' normals."""
        return self.left.num_normals(num_dims) + self.right.num_normals(num_dims)

    def both_features(self, a: Leaf, normals: Leaf) -> tuple[Array, Array]:
        """Return independent features of the two."""
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
        """Return the sum: independent and zero-mean, so the covariances add."""
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
        """Return the product: independent, so the covariances multiply."""
        left, right = self.both_features(a, normals)
        return left * right

    def __repr__(self) -> str:
        """Show the product."""
        return f"{_in_brackets(self.left, Sum)} * {_in_brackets(self.right, Sum, Product, Scaled)}"


class Scaled(HyperKernel):
    """scale * k."""

    inner: Kernel
    scale: Hyper = hyper(doc="The factor.")

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return scale * k(a, b)."""
        return self.scale * self.inner(a, b)

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return scale * k(a, a)."""
        return self.scale * self.inner.diagonal(a)

    def num_normals(self, num_dims: int) -> int:
        """Return the count of the inner kernel's normals."""
        return self.inner.num_normals(num_dims)

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the kernel's features times the root of the scale."""
        return jnp.sqrt(self.scale) * self.inner.features(a, normals)

    def __repr__(self) -> str:
        """Show a number times a kernel; with `fixed` or `bounds`, the constructor's call."""
        if self.fixed or self.bounds:
            return super().__repr__()
        return f"{self.get_params(deep=False)['scale']} * {_in_brackets(self.inner, Sum, Product, Scaled)}"


class ActiveDims(Kernel):
    """A kernel on some of the input columns."""

    inner: Kernel
    dims: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, inner: Kernel, dims: tuple[int, ...]) -> None:
        """Take a kernel and the columns it sees."""
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
        """Return the count of the inner kernel's normals, in fewer dimensions."""
        return self.inner.num_normals(len(self.dims))

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the kernel's features on the columns."""
        return self.inner.features(a[:, list(self.dims)], normals)

    def with_periods(self, periods: np.ndarray) -> "ActiveDims":
        """Fill in the kernel's periods from those of its columns."""
        return self._replaced({"inner": self.inner.with_periods(periods[list(self.dims)])})

    def bound_to(self, num_dims: int) -> "ActiveDims":
        """Bind the kernel to the number of its columns."""
        if max(self.dims) >= num_dims:
            raise ValueError(
                f"ActiveDims: column {max(self.dims)} was asked for, but there are {num_dims} (counted from 0)."
            )
        return self._replaced({"inner": self.inner.bound_to(len(self.dims))})

    def standardised(self, scale: np.ndarray) -> "ActiveDims":
        """Convert the kernel with the scales of its columns."""
        return self._replaced({"inner": self.inner.standardised(np.asarray(scale)[list(self.dims)])})

    def unstandardised(self, scale: np.ndarray) -> "ActiveDims":
        """Convert the kernel back with the scales of its columns."""
        return self._replaced({"inner": self.inner.unstandardised(np.asarray(scale)[list(self.dims)])})

    def __repr__(self) -> str:
        """Show the kernel and its columns."""
        return f"{_in_brackets(self.inner, Sum, Product, Scaled)}.on({', '.join(map(str, self.dims))})"


class Custom(Kernel):
    """Any function k(A, B) -> matrix, with no hyper-parameters of its own and no random features."""

    function: Callable[[Leaf, Leaf], Array] = eqx.field(static=True)

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the function's matrix."""
        return self.function(a, b)

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return the function, a point at a time."""
        return jax.vmap(lambda row: self.function(row[None], row[None])[0, 0])(a)

    def num_normals(self, num_dims: int) -> int:
        """A custom kernel has no features."""
        raise ValueError(
            "Custom: a kernel given as a function has no random features, so conditional='pathwise' cannot use "
            "it; take conditional='diag', 'fitc' or 'full'."
        )

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """A custom kernel has no features."""
        self.num_normals(a.shape[1])
        raise AssertionError("unreachable")


def _in_brackets(kernel: Kernel, *kinds: type[Kernel]) -> str:
    """Return how a kernel is shown inside another; without brackets, kernels of these kinds would read differently."""
    return f"({kernel!r})" if isinstance(kernel, kinds) else repr(kernel)
