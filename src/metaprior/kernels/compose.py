"""Kernels made of kernels: sums, products, scalings, a choice of dimensions, and any matrix-valued function."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.base import HyperKernel, Kernel, log_positive
from metaprior.types import Leaf


class _Pair(Kernel):
    left: Kernel
    right: Kernel

    def num_normals(self, num_dims: int) -> int:
        """Both kernels' own."""
        return self.left.num_normals(num_dims) + self.right.num_normals(num_dims)

    def both_features(self, a: Leaf, normals: Leaf) -> tuple[Array, Array]:
        """Return independent features of the two."""
        split = self.left.num_normals(a.shape[1])
        return self.left.features(a, normals[:split]), self.right.features(a, normals[split:])

    def bound_to(self, num_dims: int) -> "_Pair":
        """Bind both."""
        return type(self)(self.left.bound_to(num_dims), self.right.bound_to(num_dims))

    def standardised(self, scale: np.ndarray) -> "_Pair":
        """Convert both."""
        return type(self)(self.left.standardised(scale), self.right.standardised(scale))

    def unstandardised(self, scale: np.ndarray) -> "_Pair":
        """Convert both back."""
        return type(self)(self.left.unstandardised(scale), self.right.unstandardised(scale))


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
        return f"{self.left!r} + {self.right!r}"


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
        """Show the product, sums in brackets."""
        return " * ".join(f"({k!r})" if isinstance(k, Sum) else repr(k) for k in (self.left, self.right))


class Scaled(HyperKernel):
    """scale * k."""

    inner: Kernel
    log_scale: Leaf

    def __init__(self, inner: Kernel, scale: float | int) -> None:
        """Take a kernel and a positive number."""
        log = log_positive("Scaled", "scale", scale)
        if log is None or log.ndim:
            raise ValueError(f"Scaled: scale must be one positive number; got {scale!r}.")
        self.inner, self.log_scale, self.fixed, self.bounds = inner, log, (), ()

    @property
    def scale(self) -> Array:
        """The factor."""
        return jnp.exp(self.log_scale)

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return scale * k(a, b)."""
        return self.scale * self.inner(a, b)

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return scale * k(a, a)."""
        return self.scale * self.inner.diagonal(a)

    def num_normals(self, num_dims: int) -> int:
        """Those of the kernel."""
        return self.inner.num_normals(num_dims)

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the kernel's features times the root of the scale."""
        return jnp.sqrt(self.scale) * self.inner.features(a, normals)

    def _with_inner(self, inner: Kernel) -> "Scaled":
        scaled = Scaled(inner, 1.0)
        return eqx.tree_at(lambda k: k.log_scale, scaled, self.log_scale)

    def release_times(self) -> "Scaled":
        """Those of the kernel, and none for the scale."""
        return eqx.tree_at(
            lambda k: k.log_scale, self._with_inner(self.inner.release_times()), np.zeros((), np.float32)
        )

    def projected(self) -> "Scaled":
        """Project the kernel."""
        return self._with_inner(self.inner.projected())

    def with_periods(self, periods: np.ndarray) -> Kernel:
        """Fill in the kernel's periods."""
        return self._with_inner(self.inner.with_periods(periods))

    def bound_to(self, num_dims: int) -> "Scaled":
        """Bind the kernel."""
        return self._with_inner(self.inner.bound_to(num_dims))

    def standardised(self, scale: np.ndarray) -> "Scaled":
        """Convert the kernel."""
        return self._with_inner(self.inner.standardised(scale))

    def unstandardised(self, scale: np.ndarray) -> "Scaled":
        """Convert the kernel back."""
        return self._with_inner(self.inner.unstandardised(scale))

    def __repr__(self) -> str:
        """Show the scaled kernel."""
        inner = f"({self.inner!r})" if isinstance(self.inner, Sum) else repr(self.inner)
        return f"{float(np.exp(np.asarray(self.log_scale))):.3g} * {inner}"


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
        """Those of the kernel in fewer dimensions."""
        return self.inner.num_normals(len(self.dims))

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the kernel's features on the columns."""
        return self.inner.features(a[:, list(self.dims)], normals)

    def with_periods(self, periods: np.ndarray) -> Kernel:
        """Fill in the kernel's periods from its columns' own."""
        return type(self)(self.inner.with_periods(periods[list(self.dims)]), self.dims)

    def bound_to(self, num_dims: int) -> "ActiveDims":
        """Bind the kernel to the number of its columns."""
        if max(self.dims) >= num_dims:
            raise ValueError(
                f"ActiveDims: column {max(self.dims)} was asked for, but there are {num_dims} (counted from 0)."
            )
        return type(self)(self.inner.bound_to(len(self.dims)), self.dims)

    def standardised(self, scale: np.ndarray) -> "ActiveDims":
        """Convert the kernel with its columns' scales."""
        return type(self)(self.inner.standardised(np.asarray(scale)[list(self.dims)]), self.dims)

    def unstandardised(self, scale: np.ndarray) -> "ActiveDims":
        """Convert the kernel back with its columns' scales."""
        return type(self)(self.inner.unstandardised(np.asarray(scale)[list(self.dims)]), self.dims)

    def __repr__(self) -> str:
        """Show the kernel and its columns."""
        return f"({self.inner!r}).on({', '.join(map(str, self.dims))})"


class Custom(Kernel):
    """Any function k(A, B) -> matrix, with no hyper-parameters of its own and no random features."""

    function: Callable[[Leaf, Leaf], Array] = eqx.field(static=True)

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the function's matrix."""
        return self.function(a, b)

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return the function, a point at a time."""
        import jax

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

    def bound_to(self, num_dims: int) -> "Custom":
        """Nothing to bind."""
        return self

    def standardised(self, scale: np.ndarray) -> "Custom":
        """The function sees standardised inputs as they are."""
        return self

    def unstandardised(self, scale: np.ndarray) -> "Custom":
        """The function sees standardised inputs as they are."""
        return self
