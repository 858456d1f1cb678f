"""Kernels made of kernels: sums, products, scalings, and kernels on some columns. Also kernels from a function."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.base import Kernel
from metaprior.kernels.hyper import Hyper, hyper
from metaprior.kernels.hyper_kernel import HyperKernel
from metaprior.names import nearest
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
    """A kernel on some of the input columns, by number or by name."""

    inner: Kernel
    dims: tuple[int | str, ...] = eqx.field(static=True)

    def __init__(self, inner: Kernel, dims: Sequence[int | str]) -> None:
        """Take a kernel and the columns on which it acts."""
        if isinstance(dims, str) or not len(dims) or not all(map(_is_column, dims)):
            raise ValueError(
                f"ActiveDims: dims must be column numbers (0, 1, ...) or the names of columns; got {dims!r}."
            )
        columns: list[int | str] = [str(d) if isinstance(d, str) else int(d) for d in dims]
        self.inner, self.dims = inner, tuple(columns)

    def numbers(self) -> list[int]:
        """Return the numbers of the columns, or raise an error if some are still names."""
        numbers = [d for d in self.dims if not isinstance(d, str)]
        if len(numbers) < len(self.dims):
            raise self._nameless()
        return numbers

    def column_names(self) -> list[str]:
        """Return the columns that are named, and those inside."""
        return [d for d in self.dims if isinstance(d, str)] + self.inner.column_names()

    def _nameless(self) -> ValueError:
        name = next(d for d in self.dims if isinstance(d, str))
        return ValueError(
            f"on({name!r}): expected a data frame whose columns have names; the input has none. Fit with a DataFrame "
            "(pandas or polars), or give the number of the column, such as on(0); `kernel.with_columns(names)` turns "
            "names into numbers."
        )

    def with_columns(self, names: Sequence[str] | None) -> "ActiveDims":
        """Return the kernel with the numbers of its columns in place of their names."""
        if names is None and any(isinstance(d, str) for d in self.dims):
            raise self._nameless()
        dims = [_place(d, [] if names is None else list(names)) if isinstance(d, str) else d for d in self.dims]
        return self._replaced({"dims": dims})

    def with_names(self, names: Sequence[str] | None) -> "ActiveDims":
        """Return the kernel with the names of its columns in place of their numbers, where these are unique."""
        if names is None:
            return self
        known: list[int | str] = [name if list(names).count(name) == 1 else place for place, name in enumerate(names)]
        return self._replaced({"dims": [d if isinstance(d, str) else known[d] for d in self.dims]})

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return k on the columns."""
        return self.inner(a[:, self.numbers()], b[:, self.numbers()])

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return k on the columns."""
        return self.inner.diagonal(a[:, self.numbers()])

    def num_normals(self, num_dims: int) -> int:
        """Return the count of the inner kernel on its columns."""
        return self.inner.num_normals(len(self.dims))

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the features of the inner kernel on its columns."""
        return self.inner.features(a[:, self.numbers()], normals)

    def with_periods(self, periods: np.ndarray) -> "ActiveDims":
        """Return the kernel with unknown periods filled in from those of its columns."""
        return self._replaced({"inner": self.inner.with_periods(periods[self.numbers()])})

    def bound_to(self, num_dims: int) -> "ActiveDims":
        """Return the kernel with hyper-parameters spread over its own columns, which must exist."""
        if max(self.numbers()) >= num_dims:
            raise ValueError(
                f"ActiveDims: expected columns from 0 to {num_dims - 1}, as the input has {num_dims}; got {self.dims}."
            )
        return self._replaced({"inner": self.inner.bound_to(len(self.dims))})

    def standardised(self, scale: np.ndarray) -> "ActiveDims":
        """Return the kernel converted with the scales of its columns."""
        return self._replaced({"inner": self.inner.standardised(np.asarray(scale)[self.numbers()])})

    def unstandardised(self, scale: np.ndarray) -> "ActiveDims":
        """Return the kernel converted back with the scales of its columns."""
        return self._replaced({"inner": self.inner.unstandardised(np.asarray(scale)[self.numbers()])})

    def __repr__(self) -> str:
        """Show the kernel and its columns."""
        return f"{_in_brackets(self.inner, Sum, Product, Scaled)}.on({', '.join(map(repr, self.dims))})"


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


def _is_column(value: object) -> bool:
    """Return whether a value is the name or the number of a column."""
    if isinstance(value, str):
        return True
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)


def _place(name: str, names: list[str]) -> int:
    """Return the number of the column with a name; there must be one."""
    if names.count(name) == 1:
        return names.index(name)
    if name in names:
        raise ValueError(f"on({name!r}): expected one column of this name; there are {names.count(name)}. Rename them.")
    shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    raise ValueError(f"on({name!r}): there is no column {name!r}{nearest(name, names)}; the columns are {shown}.")


def _in_brackets(kernel: Kernel, *kinds: type[Kernel]) -> str:
    """Return how a kernel is shown inside another: in brackets if it is one of these kinds."""
    return f"({kernel!r})" if isinstance(kernel, kinds) else repr(kernel)
