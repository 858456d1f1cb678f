"""Convert estimators to plain values, which JSON can hold, and back.

The plain form is a tree of numbers, strings, lists, arrays and objects of this library, each named by its class.
Reading rejects classes from outside this library, so a file from an untrusted source cannot run code.
"""

import dataclasses
import importlib
import warnings
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np

from metaprior.inputs import Projection
from metaprior.io.renamed import ATTRIBUTES, present_fields, present_name, present_parameters
from metaprior.networks.activations import activation_named, name_of_activation

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
        if value.dtype.kind in "biuf":
            name = f"a{len(self.arrays)}"
            self.arrays[name] = np.ascontiguousarray(value).reshape(value.shape)
            return {"array": name}
        plain = value.tolist()
        if value.dtype.kind in "US" or all(isinstance(item, str) for item in value.ravel()):
            return {"texts": plain, "dtype": value.dtype.str if value.dtype.kind in "US" else "object"}
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
            return self.instance(value, {name: getattr(value, name) for name in _fields(type(value))})
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
                warnings.warn(f"save: {name} is not saved; a loaded model has its default.", UserWarning, stacklevel=4)
        state = value.saved_state() if vars(value).keys() - params.keys() else {}  # before a fit there is none
        return {
            "class": _class_name(type(value)),
            "params": {name: self.plain(item) for name, item in params.items()},
            "state": {name: self.plain(item) for name, item in state.items()},
        }

    def instance(self, value: Any, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the class and the parts of an object."""
        return {"class": _class_name(type(value)), "fields": {k: self.plain(v) for k, v in fields.items()}}


def _fields(cls: type) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]


#: Fields that files of earlier versions do not have, and the values that they stand for.
_ADDED: dict[str, dict[str, Any]] = {
    "metaprior.model:Model": {"output": None, "hypers": None},
    "metaprior.weights.metagp:MetaGP": {"output": None},
    "metaprior.weights.mean_field:MeanField": {"log_scales": None},
}


#: Classes that this version no longer has, and what to do about files that contain them.
_GONE = {
    "metaprior.weights.multitask:Shared": "tasks no longer draw the weights of their output layers: fit them again",
}


def _later_fields(cls: type) -> dict[str, Any]:
    """Return the fields of a class that files of earlier versions lack, with their values."""
    return _ADDED.get(_class_name(cls), {})


def _class_name(cls: type) -> str:
    if not cls.__module__.startswith("metaprior."):
        raise UnsavableError(f"{cls.__module__}.{cls.__qualname__} is not a class of this library: it cannot be saved.")
    return f"{cls.__module__}:{cls.__qualname__}"


# --- and back ------------------------------------------------------------------------


class PlainReader:
    """Convert plain values back to objects of this library."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        #: How each kind of plain value is read, from its content and, for texts, its type.
        self.kinds: dict[str, Callable[[Any, Any], Any]] = {
            "activation": self._activation,
            "array": self._array,
            "dict": self._dict,
            "estimator": self.estimator,
            "float": self._float,
            "list": self._list,
            "random_state": self._random_state,
            "range": self._range,
            "scalar": self._scalar,
            "texts": self._texts,
            "tuple": self._tuple,
        }

    def value(self, plain: Any) -> Any:
        """Return what a plain value stands for."""
        if plain is None or isinstance(plain, bool | int | str):
            return plain
        if not isinstance(plain, dict):
            raise ValueError(f"unexpected {plain!r}")
        if "class" in plain:
            return self.instance(plain)
        ((kind, content),) = [(k, v) for k, v in plain.items() if k != "dtype"]
        if kind not in self.kinds:
            raise ValueError(f"unexpected kind {kind!r}")
        return self.kinds[kind](content, plain.get("dtype"))

    def instance(self, plain: dict[str, Any]) -> Any:
        """Return an object from its class and its fields."""
        cls = named_class(plain["class"])
        fields = present_fields(cls.__name__, {name: self.value(item) for name, item in plain["fields"].items()})
        if issubclass(cls, tuple):
            return cls(**fields)
        if cls is not Projection:
            fields = {**_later_fields(cls), **fields}
            if set(fields) != set(_fields(cls)):
                raise ValueError(f"the fields of {cls.__name__} are {sorted(_fields(cls))}, not {sorted(fields)}")
        made = object.__new__(cls)  # no constructor runs, as when JAX rebuilds a tree
        for name, item in fields.items():
            object.__setattr__(made, name, item)
        return made

    def estimator(self, content: dict[str, Any], _: Any = None) -> Any:
        """Return an estimator from its class, its parameters and its state."""
        params, state = (self._dict(content[part], None) for part in ("params", "state"))
        return restore_estimator(content["class"], params, state)

    def _float(self, content: str, _: Any) -> float:
        return float.fromhex(content)

    def _array(self, content: str, _: Any) -> np.ndarray:
        return self.arrays[content]

    def _texts(self, content: list[Any], dtype: str) -> np.ndarray:
        if dtype != "object" and np.dtype(dtype).kind not in "US":
            raise ValueError(f"unexpected type {dtype!r} of texts")
        return np.array(content, dtype=object if dtype == "object" else dtype)

    def _scalar(self, content: dict[str, Any], _: Any) -> Any:
        return self.value(content)[0]

    def _range(self, content: list[int], _: Any) -> range:
        return range(*content)

    def _random_state(self, content: dict[str, Any], _: Any) -> np.random.RandomState:
        state = np.random.RandomState()
        state.set_state(tuple(self.value(content)))
        return state

    def _tuple(self, content: list[Any], _: Any) -> tuple[Any, ...]:
        return tuple(self.value(item) for item in content)

    def _list(self, content: list[Any], _: Any) -> list[Any]:
        return [self.value(item) for item in content]

    def _dict(self, content: dict[str, Any], _: Any) -> dict[str, Any]:
        return {key: self.value(item) for key, item in content.items()}

    def _activation(self, content: str, _: Any) -> Any:
        return activation_named(content)


def restore_estimator(class_name: str, params: dict[str, Any], state: dict[str, Any]) -> Any:
    """Return an estimator from the parts of a file of any version. Without a state it is unfitted."""
    cls: Any = named_class(class_name)
    made = cls(**present_parameters(params))
    if state:
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
