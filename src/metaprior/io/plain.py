"""Convert estimators to plain values, which JSON can hold. `reading.py` converts them back.

The plain form is a tree of numbers, strings, lists, arrays and objects of this library, each named by its class.
Classes from outside this library are rejected, so a file from an untrusted source cannot run code.
"""

import dataclasses
import importlib
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np

from metaprior.inputs import Projection
from metaprior.io.container import NAMES
from metaprior.io.renamed import ATTRIBUTES, present_name, present_parameters
from metaprior.networks.activations import name_of_activation
from metaprior.user_warnings import warn_user

#: Parameters that only training needs and that have no plain form. They are left out, with a warning.
ONLY_FOR_TRAINING = ("optimizer",)


class UnsavableError(TypeError):
    """Raised for a part of an estimator that has no plain form."""


@runtime_checkable
class Savable(Protocol):
    """An object that is saved as its class, its parameters and its state, such as an estimator."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor."""

    def saved_state(self) -> dict[str, Any]:
        """Return what fitting has added."""

    def restore_state(self, state: dict[str, Any]) -> None:
        """Restore what `saved_state` returned."""


# --- to plain values ---------------------------------------------------------------


class PlainWriter:
    """Convert an estimator to plain values, and collect its arrays in `arrays`."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def array(self, value: np.ndarray) -> dict[str, Any]:
        """Collect an array of numbers and return its name, or return an array of texts as a list."""
        native = value.dtype.newbyteorder("=")
        if native in NAMES:
            name = f"a{len(self.arrays)}"
            # ascontiguousarray copies nothing that is contiguous; it gives a scalar one axis, which reshape removes
            self.arrays[name] = np.ascontiguousarray(value, native).reshape(value.shape)
            return {"array": name}
        if value.dtype.kind == "U" or (value.dtype.hasobject and all(isinstance(item, str) for item in value.ravel())):
            return {"texts": value.tolist(), "dtype": value.dtype.str if value.dtype.kind == "U" else "object"}
        raise UnsavableError(f"an array of {value.dtype} cannot be saved; use numbers or strings.")

    def plain(self, value: Any) -> Any:
        """Return the plain form of any value."""
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, np.generic):
            return {"scalar": self.array(np.asarray(value)[None])}
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, (np.ndarray, jax.Array)):
            return self.array(np.asarray(value))
        return self.compound(value)

    def compound(self, value: Any) -> Any:
        """Return the plain form of a value that has parts."""
        if isinstance(value, Savable):
            return {"estimator": self.estimator(value)}
        if isinstance(value, range):
            return {"range": [value.start, value.stop, value.step]}
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.plain(list(value.get_state(legacy=True)))}
        if isinstance(value, eqx.Module):
            return self.instance(value, {name: getattr(value, name) for name in fields_of(type(value))})
        if isinstance(value, Projection):
            return self.instance(value, vars(value))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self.instance(value, dict(zip(value._fields, value, strict=True)))
        if isinstance(value, tuple):
            return {"tuple": [self.plain(item) for item in value]}
        if isinstance(value, list):
            return {"list": [self.plain(item) for item in value]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"dict": {key: self.plain(item) for key, item in value.items()}}
        if callable(value) and name_of_activation(value) is not None:
            return {"activation": name_of_activation(value)}
        raise UnsavableError(
            f"{value!r} cannot be saved: expected numbers, strings, arrays and objects of this library. Your own "
            "functions have no plain form; use a named activation, or pickle the estimator."
        )

    def estimator(self, value: Savable) -> dict[str, Any]:
        """Return the class, the parameters and the state of an estimator."""
        params = value.get_params(deep=False)
        for name in ONLY_FOR_TRAINING:
            if params.get(name) is not None:
                params[name] = None
                warn_user(
                    f"save: {name} is not saved; a loaded model has its default, and set_params({name}=...) gives it "
                    "another."
                )
        state = value.saved_state() if vars(value).keys() - params.keys() else {}  # before a fit there is none
        return {
            "class": class_name(type(value)),
            "params": {name: self.plain(item) for name, item in params.items()},
            "state": {name: self.plain(item) for name, item in state.items()},
        }

    def instance(self, value: Any, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the class and the parts of an object."""
        return {"class": class_name(type(value)), "fields": {k: self.plain(v) for k, v in fields.items()}}


def fields_of(cls: type) -> list[str]:
    """Return the names of the fields of a class."""
    return [field.name for field in dataclasses.fields(cls)]


#: Classes that this version no longer has, and what to do about files that contain them.
_GONE = {
    "metaprior.weights.multitask:Shared": "tasks no longer draw the weights of their output layers: fit them again",
}


def class_name(cls: type) -> str:
    """Return the name of a class of this library, as "module:Class"."""
    if not cls.__module__.startswith("metaprior."):
        raise UnsavableError(f"{cls.__module__}.{cls.__qualname__} is not a class of this library: it cannot be saved.")
    return f"{cls.__module__}:{cls.__qualname__}"


# --- classes by their names -----------------------------------------------------------


def restore_estimator(
    class_name: str, params: dict[str, Any], state: dict[str, Any], *, is_fitted: bool = False
) -> Any:
    """Return an estimator from the parts of a file of any version. Without a state it is unfitted, if it may be."""
    cls: Any = named_class(class_name)
    made = cls(**present_parameters(params))
    if state or is_fitted:
        made.restore_state({ATTRIBUTES.get(name, name): value for name, value in state.items()})
    return made


def named_class(name: str) -> type:
    """Return a class of this library by its name, or raise an error for anything else."""
    if name in _GONE:
        raise ValueError(_GONE[name])
    module, _, path = present_name(name).partition(":")
    if not module.startswith("metaprior.") or not path.isidentifier():
        raise ValueError(f"{name!r} is not a class of this library")
    try:
        cls = getattr(importlib.import_module(module), path)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"this version of the library has no {name!r}") from error
    known = isinstance(cls, type) and (
        cls is Projection
        or issubclass(cls, eqx.Module)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
        or issubclass(cls, Savable)
    )
    if not known or cls.__module__ != module:
        raise ValueError(f"{name!r} cannot be part of a model")
    return cls
