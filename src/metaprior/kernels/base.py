"""The interface of a kernel: a cross-matrix, a diagonal and random features. The base class has +, * and parameters.

A kernel is a function of two sets of points. Besides its matrix it has *random features* psi(x) with zero mean and
E[psi(x) psi(x')] = k(x, x'). The sum of independent zero-mean features is a feature of the sum of the kernels, and
their product is a feature of the product. So every composition has features. The kernel of the GP over weight codes is
a product over blocks, so its features are products too, and `pathwise` draws treat each block separately.
"""

import abc
import copy
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.types import Leaf

K = TypeVar("K", bound="Kernel")


class Kernel(eqx.Module):
    """A positive semi-definite function of two points.

    A kernel is an immutable value. Two kernels are equal (`==`) if they have the same class and the same settings, and
    all their hyper-parameters have the same shape, float type and bits. NumPy and JAX arrays may equal each other.

    scikit-learn's searches can set the parameters of a kernel, and of the kernels it is made of, by name:
    `input_kernel__lengthscale`, `input_kernel__left__period`. Because kernels are immutable, `set_params` returns a
    changed copy. The `set_params` of this library's estimators replaces the old kernel by the copy.
    """

    @abc.abstractmethod
    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the cross-matrix k(a, b)."""

    @abc.abstractmethod
    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return k(a_n, a_n)."""

    @abc.abstractmethod
    def num_normals(self, num_dims: int) -> int:
        """Return how many standard normals one random feature needs."""

    @abc.abstractmethod
    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return F random features with zero mean and E[psi(x) psi(x')] = k(x, x') over the normals."""

    # --- what is the same for a kernel and for the kernels it is made of ----------------

    def bound_to(self: K, num_dims: int) -> K:
        """Return the kernel with its hyper-parameters spread over `num_dims` dimensions."""
        return self._with_children(lambda kernel: kernel.bound_to(num_dims))

    def standardised(self: K, scale: np.ndarray) -> K:
        """Return the kernel for inputs divided by `scale`; values that were given in data units are converted."""
        return self._with_children(lambda kernel: kernel.standardised(scale))

    def unstandardised(self: K, scale: np.ndarray) -> K:
        """Return the kernel in data units again: the inverse of `standardised`."""
        return self._with_children(lambda kernel: kernel.unstandardised(scale))

    def release_times(self: K) -> K:
        """Return a tree like the kernel: the fraction of training for which each leaf is held; inf if it is fixed."""
        return self._with_children(lambda kernel: kernel.release_times())

    def step_factors(self: K) -> K:
        """Return a tree like the kernel: what the step of each leaf is multiplied by."""
        return self._with_children(lambda kernel: kernel.step_factors())

    def projected(self: K) -> K:
        """Return the kernel with every bounded hyper-parameter moved inside its bounds."""
        return self._with_children(lambda kernel: kernel.projected())

    def unknown_periods(self) -> bool:
        """Return whether a period was not given, so that it has to be found in the data."""
        return any(child.unknown_periods() for child in self.children().values())

    def with_periods(self: K, periods: np.ndarray) -> K:
        """Return the kernel with unknown periods filled in, from one value per input column."""
        return self._with_children(lambda kernel: kernel.with_periods(periods))

    def cost_of_lengthscales(self) -> Float[Array, ""]:
        """Return what lengthscales that differ between columns cost: minus their log prior density, without constants.

        A kernel without a lengthscale per column has the sum over the kernels that it is made of.
        """
        return sum((child.cost_of_lengthscales() for child in self.children().values()), jnp.zeros(()))

    def column_names(self) -> list[str]:
        """Return the names of columns that the kernel, or a kernel it is made of, acts on by name."""
        return [name for child in self.children().values() for name in child.column_names()]

    def with_columns(self: K, names: Sequence[str] | None) -> K:
        """Return the kernel for arrays with columns of these names: `on("age")` becomes `on(0)`.

        Parameters
        ----------
        names : sequence of str, or None
            The names of all columns, in their order; None where columns have no names.
        """
        return self._with_children(lambda kernel: kernel.with_columns(names))

    def with_names(self: K, names: Sequence[str] | None) -> K:
        """Return the kernel for frames with columns of these names: `on(0)` becomes `on("age")`."""
        return self._with_children(lambda kernel: kernel.with_names(names))

    def children(self) -> dict[str, "Kernel"]:
        """Return the kernels this one is made of, by field name."""
        return {name: value for name, value in self._fields().items() if isinstance(value, Kernel)}

    def _fields(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    def _with_children(self: K, change: Callable[["Kernel"], "Kernel"]) -> K:
        changed = {name: change(child) for name, child in self.children().items()}
        return self._replaced(changed) if changed else self

    def _replaced(self: K, changes: Mapping[str, Any]) -> K:
        """Return a copy with some arguments of the constructor changed."""
        return dataclasses.replace(self, **changes)

    # --- scikit-learn's interface -------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor, with natural values as plain numbers.

        Parameters
        ----------
        deep : bool, default=True
            Whether to add the parameters of the kernels that this one is made of, as `left__lengthscale`.
        """
        own = self._parameters()
        if not deep:
            return own
        parts = {name: child.get_params() for name, child in self.children().items()}
        return own | {f"{name}__{inner}": value for name, part in parts.items() for inner, value in part.items()}

    def set_params(self: K, **params: Any) -> K:
        """Return a copy with some parameters changed, named as in `get_params`; this kernel does not change."""
        own = self._parameters()
        unknown = sorted({name.partition("__")[0] for name in params} - set(own))
        if unknown:
            raise ValueError(f"{type(self).__name__}: expected parameters among {sorted(own)}; got {unknown}.")
        return self._replaced(with_changed_kernels(own, params))

    def _parameters(self) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return self._fields()

    def __sklearn_clone__(self: K) -> K:
        """Return an independent copy, equal to the last bit."""
        return copy.deepcopy(self)

    # --- algebra ------------------------------------------------------------------------

    def __add__(self, other: "Kernel | float | int") -> "Kernel":
        """Return the sum; a number means a constant kernel."""
        from metaprior.kernels.compose import Sum
        from metaprior.kernels.constant import Constant

        return Sum(self, other if isinstance(other, Kernel) else Constant(other))

    def __mul__(self, other: "Kernel | float | int") -> "Kernel":
        """Return the product with a kernel, or the kernel scaled by a positive number."""
        from metaprior.kernels.compose import Product, Scaled

        return Product(self, other) if isinstance(other, Kernel) else Scaled(self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def on(self, *dims: int | str) -> "Kernel":
        """Return the kernel acting on these input columns only.

        Columns are numbers, from 0, or names: `RBF().on("age", "bmi")`. Estimators find names in the data frame that
        they are fitted to.
        """
        from metaprior.kernels.compose import ActiveDims

        return ActiveDims(self, dims)


def with_changed_kernels(parameters: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `changes` with those inside a kernel, such as `left__lengthscale`, merged into a changed kernel `left`.

    `parameters` are the current parameters of the object. Changes inside anything else are returned as they are.
    """
    whole, inside = dict[str, Any](), defaultdict[str, dict[str, Any]](dict)
    for path, value in changes.items():
        name, is_nested, inner = path.partition("__")
        if is_nested:
            inside[name][inner] = value
        else:
            whole[name] = value
    for name, inner_changes in inside.items():
        part = whole.get(name, parameters.get(name, NotImplemented))
        if isinstance(part, Kernel):
            whole[name] = part.set_params(**inner_changes)
        elif part is None or isinstance(part, str):
            raise ValueError(
                f"{name}: expected a kernel with the parameter {sorted(inner_changes)[0]!r}; got {part!r}. Set {name} "
                "to a kernel such as metaprior.kernels.RBF() first."
            )
        else:
            whole |= {f"{name}__{inner}": value for inner, value in inner_changes.items()}
    return whole
