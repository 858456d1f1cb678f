"""Kernels with hyper-parameters: everything that follows from declaring them (`metaprior.kernels.hyper`)."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from metaprior.kernels.base import Kernel
from metaprior.kernels.hyper import (
    Bounds,
    BoundsByName,
    Declaration,
    End,
    Hyper,
    Log,
    Names,
    argument,
    checked_bounds,
    checked_names,
    natural,
    plain,
)
from metaprior.types import Leaf

H = TypeVar("H", bound="HyperKernel")


class HyperKernel(Kernel):
    """A kernel with positive hyper-parameters, which its class declares by `name: Hyper = hyper(...)`.

    Training changes the leaf `log_<name>`, the property `<name>` is its natural value, and the constructor takes
    natural values. A class may have other fields, such as a static setting or a kernel, which the constructor takes
    unchanged. It must not define `__init__`.

    Parameters
    ----------
    fixed : sequence of str, default=()
        Names of hyper-parameters that training does not change.
    bounds : dict, optional
        The lowest and highest value of hyper-parameters, by name and in the units of the data.
    """

    fixed: Names = eqx.field(static=True, kw_only=True, default=())
    bounds: Bounds = eqx.field(static=True, kw_only=True, default=())
    #: Hyper-parameters that were not given and have a `start`; their leaves are already in standardised units.
    unset: tuple[str, ...] = eqx.field(static=True, init=False, default=())

    #: The declarations of a class and its bases, and the arguments of the constructor except `fixed` and `bounds`.
    declared = dict[str, Declaration]()
    arguments = dict[str, inspect.Parameter]()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Turn the declarations into leaves, properties and a constructor."""
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            raise TypeError(f"{cls.__name__}: the constructor follows from the declared fields; remove `__init__`.")
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Declaration)}
        annotations = inspect.get_annotations(cls)
        annotations |= {name: Hyper for name in own if name not in annotations}
        cls.arguments = {**cls.arguments, **_arguments(vars(cls), annotations)}
        cls.declared = {**cls.declared, **own}
        cls.__annotations__ = dict(
            (f"log_{name}", Hyper) if name in own else (name, annotation) for name, annotation in annotations.items()
        )
        properties = {name: declaration.natural_value(name) for name, declaration in own.items()}
        for name, attribute in {**properties, "__init__": _constructor(cls)}.items():
            setattr(cls, name, attribute)

    def _fill(self, values: Mapping[str, Any]) -> None:
        """Check the arguments of the constructor and set the fields."""
        kernel, fields = type(self).__name__, dict(values)
        logs = {name: declaration.log(kernel, name, fields.pop(name)) for name, declaration in self.declared.items()}
        fields |= {f"log_{name}": log.leaf for name, log in logs.items()}
        fields["unset"] = tuple(name for name, log in logs.items() if log.unset)
        fields["fixed"] = checked_names(kernel, self.hypers(), fields["fixed"])
        fields["bounds"] = checked_bounds(kernel, self.hypers(), fields["bounds"])
        for name, value in fields.items():
            setattr(self, name, value)

    def hypers(self) -> tuple[str, ...]:
        """Return the names of the hyper-parameters."""
        return tuple(self.declared)

    def leaf(self, name: str) -> Leaf | None:
        """Return the logarithm of a hyper-parameter, or None if it is not known yet."""
        return getattr(self, f"log_{name}")

    def with_leaves(self: H, leaves: Mapping[str, Leaf]) -> H:
        """Return a copy with the logarithms of some hyper-parameters replaced, except those not known yet."""
        known = {name: leaf for name, leaf in leaves.items() if self.leaf(name) is not None}
        return self._replaced({name: self._log(name, leaf) for name, leaf in known.items()}) if known else self

    def step_factors(self: H) -> H:
        """Return 1 for every hyper-parameter."""
        return super().step_factors().with_leaves({name: np.asarray(1.0, np.float32) for name in self.hypers()})

    def release_times(self: H) -> H:
        """Return 0 for every hyper-parameter, or inf if it is fixed."""
        times = {name: np.asarray(np.inf if name in self.fixed else 0.0, np.float32) for name in self.hypers()}
        return super().release_times().with_leaves(times)

    def projected(self: H) -> H:
        """Return the kernel with bounded leaves clipped."""
        clipped = {
            name: jnp.clip(leaf, np.log(low), np.log(high))
            for name, low, high in self.bounds
            if (leaf := self.leaf(name)) is not None
        }
        return super().projected().with_leaves(clipped)

    def bound_to(self: H, num_dims: int) -> H:
        """Return the kernel with single values spread over the dimensions; the length of vectors is checked."""
        names = [name for name, declaration in self.declared.items() if declaration.per_dimension]
        known = {name: leaf for name in names if (leaf := self.leaf(name)) is not None}
        spread = {name: self._spread(name, leaf, num_dims) for name, leaf in known.items()}
        return super().bound_to(num_dims).with_leaves(spread)

    def standardised(self: H, scale: np.ndarray) -> H:
        """Return the kernel with units converted; values that were not given are in standardised units already."""
        return super().standardised(scale)._converted(-np.log(scale), self.unset)

    def unstandardised(self: H, scale: np.ndarray) -> H:
        """Return the kernel with units converted back, for values given or not; then no value is unset."""
        return super().unstandardised(scale)._converted(np.log(scale), ())

    def _converted(self: H, log_factor: np.ndarray, unset: Sequence[str]) -> H:
        """Return the kernel with lengths times exp(log_factor), except values that stay unset."""
        powers = {
            name: declaration.unit * log_factor for name, declaration in self.declared.items() if declaration.unit
        }
        leaves = {name: leaf for name in powers if (leaf := self.leaf(name)) is not None}
        moved = {
            name: Log(leaf, True) if name in unset else Log(_as_leaf(leaf + powers[name]), False)
            for name, leaf in leaves.items()
        }
        bounds = {
            name: tuple(_times(end, np.exp(powers.get(name, 0.0))) for end in ends) for name, *ends in self.bounds
        }
        return self._replaced({**moved, "bounds": bounds}) if powers else self

    def _spread(self, name: str, leaf: Leaf, num_dims: int) -> Leaf:
        if np.ndim(leaf) == 1 and np.shape(leaf)[0] not in (1, num_dims):
            raise ValueError(
                f"{type(self).__name__}: expected {name} to be one value, or one per dimension ({num_dims}); got "
                f"{np.shape(leaf)[0]} values."
            )
        if isinstance(leaf, jax.Array):  # may be traced
            return jnp.broadcast_to(leaf, (num_dims,))
        return np.broadcast_to(np.asarray(leaf), (num_dims,)).copy()

    def _log(self, name: str, leaf: Leaf | None) -> Log:
        return Log(leaf if leaf is None else _as_leaf(leaf), name in self.unset)

    def _replaced(self: H, changes: Mapping[str, Any]) -> H:
        """Return a copy with changes; all other leaves are exactly the same."""
        settings = {name: getattr(self, name) for name in self.arguments if name not in self.declared}
        logs = {name: self._log(name, self.leaf(name)) for name in self.declared}
        return type(self)(**{**settings, **logs, "fixed": self.fixed, "bounds": self._bounds_by_name(), **changes})

    def _parameters(self) -> dict[str, Any]:
        own = {name: self._value(name) if name in self.declared else getattr(self, name) for name in self.arguments}
        return {**own, "fixed": self.fixed, "bounds": self._bounds_by_name()}

    def _value(self, name: str) -> Any:
        """Return a natural value in the form that the constructor takes: None if it is not known or not set."""
        value = natural(self.leaf(name))
        is_plain = isinstance(value, float | list)
        is_start = name in self.unset and is_plain and set(np.ravel(value)) == {self.declared[name].start}
        return None if is_start else value

    def _bounds_by_name(self) -> BoundsByName:
        return {name: (low, high) for name, low, high in self.bounds} or None

    def __repr__(self) -> str:
        """Show the call of the constructor, with natural values as plain numbers."""
        shown = {name: value for name, value in self._parameters().items() if value is not None}
        if not self.fixed:
            del shown["fixed"]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def _arguments(namespace: Mapping[str, Any], annotations: Mapping[str, Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments of the constructor for the fields that a class declares in its body."""
    found = {}
    for name, annotation in annotations.items():
        value = namespace.get(name, dataclasses.MISSING)
        if isinstance(value, Declaration):
            found[name] = value.parameter(name)
        elif "ClassVar" not in str(annotation):
            found[name] = argument(name, value.default if isinstance(value, dataclasses.Field) else value, annotation)
    return found


def _constructor(cls: type[HyperKernel]) -> Callable[..., None]:
    """Return an `__init__` whose signature names every argument."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *cls.arguments.values(),
            inspect.Parameter("fixed", keyword, default=(), annotation=Sequence[str]),
            inspect.Parameter("bounds", keyword, default=None, annotation=BoundsByName),
        ],
        return_annotation=None,
    )
    names = ", ".join([*cls.arguments, "fixed", "bounds"])

    def __init__(self: HyperKernel, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}: {error}; expected {names}.") from None
        bound.apply_defaults()
        self._fill({name: value for name, value in bound.arguments.items() if name != "self"})

    meanings = "".join(f"\n{name}: {declaration.doc}" for name, declaration in cls.declared.items())
    __init__.__doc__ = f"Take natural values, in the units of the data.\n{meanings}"
    __init__.__dict__["__signature__"] = signature
    return __init__


def _times(end: End, factor: np.ndarray | float) -> End:
    return plain(np.asarray(end) * factor)


def _as_leaf(value: Any) -> Leaf:
    """Return a JAX array unchanged, anything else as a NumPy array."""
    return value if isinstance(value, jax.Array) else np.asarray(value)
