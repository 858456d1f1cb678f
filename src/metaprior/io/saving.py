"""Files of fitted estimators and of plain states: arrays in safetensors, all else in JSON in its header; no pickle.

What is written is a tree of plain things (numbers, strings, lists, arrays) and of objects of this library, each named
by its class. Reading makes no other object: a class outside this library is refused, and a file from a stranger can
run no code. A digest over all of it tells an altered file. Writing is atomic: a temporary file in the same folder,
flushed to the disk, then renamed.
"""

import contextlib
import dataclasses
import hashlib
import importlib
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
import numpy as np

from metaprior.inputs import Projection
from metaprior.io.atomic import write_atomically as write_atomically
from metaprior.io.renamed import ATTRIBUTES, STATE_RECORDS, present_fields, present_name, present_parameters
from metaprior.networks.activations import activation_named, name_of_activation
from metaprior.version import __version__

#: The version of the format; a reader refuses later ones and reads earlier ones: 1 had the estimator alone, 2 names the
#: version of the library that wrote it.
FORMAT = 2
#: Files of format 1 do not say which version wrote them: there was one.
FIRST_VERSION = "0.1.0"
#: Parameters that only training needs and that have no plain form: left out, with a warning.
ONLY_FOR_TRAINING = ("optimizer",)


class UnsavableError(TypeError):
    """Something in the estimator has no plain form."""


@runtime_checkable
class Savable(Protocol):
    """An object that is saved as its class, its parameters and a state of plain things: estimators and loops are."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters that the class is constructed with."""

    def _saved_state(self) -> dict[str, Any]:
        """Return what fitting has added."""

    def _restore(self, state: dict[str, Any]) -> None:
        """Take what `_saved_state` returned."""


# --- to plain things ---------------------------------------------------------------


class _Writer:
    """Turns an estimator to plain things, arrays set aside."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def array(self, value: np.ndarray) -> dict[str, Any]:
        if value.dtype.kind in "biuf":
            name = f"a{len(self.arrays)}"
            self.arrays[name] = np.ascontiguousarray(value).reshape(value.shape)
            return {"array": name}
        plain = value.tolist()
        if value.dtype.kind in "US" or all(isinstance(item, str) for item in value.ravel()):
            return {"texts": plain, "dtype": value.dtype.str if value.dtype.kind in "US" else "object"}
        raise UnsavableError(f"an array of {value.dtype} cannot be saved; use numbers or strings as labels.")

    def plain(self, value: Any) -> Any:
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
            f"{value!r} cannot be saved: expected numbers, strings, arrays and parts of this library; a function of "
            "your own has no plain form (take a named activation, or keep the estimator by pickle)."
        )

    def estimator(self, value: Savable) -> dict[str, Any]:
        params = value.get_params(deep=False)
        for name in ONLY_FOR_TRAINING:
            if params.get(name) is not None:
                params[name] = None
                warnings.warn(f"save: {name} is not saved; a loaded model has the default.", UserWarning, stacklevel=4)
        state = value._saved_state() if vars(value).keys() - params.keys() else {}  # there is none before a fit
        return {
            "class": _class_name(type(value)),
            "params": {name: self.plain(item) for name, item in params.items()},
            "state": {name: self.plain(item) for name, item in state.items()},
        }

    def instance(self, value: Any, fields: dict[str, Any]) -> dict[str, Any]:
        return {"class": _class_name(type(value)), "fields": {k: self.plain(v) for k, v in fields.items()}}


def _fields(cls: type) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]


#: Parts that files of earlier versions do not have, and what they are there.
_ADDED: dict[str, dict[str, Any]] = {
    "metaprior.model:Model": {"output": None, "hypers": None},
    "metaprior.weights.metagp:MetaGP": {"output": None},
    "metaprior.weights.mean_field:MeanField": {"log_scales": None},
}


#: Parts that this version no longer has, and what to do about files that hold them.
_GONE = {
    "metaprior.weights.multitask:Shared": "tasks no longer draw the weights of their output layers: fit them again",
}


def _later_fields(cls: type) -> dict[str, Any]:
    """Return the parts of a class that files of earlier versions lack, as they were then."""
    return _ADDED.get(_class_name(cls), {})


def _class_name(cls: type) -> str:
    if not cls.__module__.startswith("metaprior."):
        raise UnsavableError(f"{cls.__module__}.{cls.__qualname__} is not a part of this library and cannot be saved.")
    return f"{cls.__module__}:{cls.__qualname__}"


# --- and back ------------------------------------------------------------------------


class _Reader:
    """Turns plain things to objects of this library."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays
        #: How each kind of plain thing is read, from its content and, for texts, its type.
        self.kinds: dict[str, Callable[[Any, Any], Any]] = {
            "activation": self._activation,
            "array": self._array,
            "dict": self._dict,
            "estimator": self._estimator,
            "float": self._float,
            "list": self._list,
            "random_state": self._random_state,
            "range": self._range,
            "scalar": self._scalar,
            "texts": self._texts,
            "tuple": self._tuple,
        }

    def value(self, plain: Any) -> Any:
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
        cls = named_class(plain["class"])
        fields = present_fields(cls.__name__, {name: self.value(item) for name, item in plain["fields"].items()})
        if issubclass(cls, tuple):
            return cls(**fields)
        if cls is not Projection:
            fields = {**_later_fields(cls), **fields}
            if set(fields) != set(_fields(cls)):
                raise ValueError(f"the parts of {cls.__name__} are {sorted(_fields(cls))}, not {sorted(fields)}")
        made = object.__new__(cls)  # as a tree is rebuilt: no constructor runs
        for name, item in fields.items():
            object.__setattr__(made, name, item)
        return made

    def _estimator(self, content: dict[str, Any], _: Any = None) -> Any:
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
    """Return an estimator of this library from its parts as a file of any version names them; no state, no fit."""
    cls: Any = named_class(class_name)
    made = cls(**present_parameters(params))
    if state:
        made._restore({ATTRIBUTES.get(name, name): value for name, value in state.items()})
    return made


def named_class(name: str) -> type:
    """Return a class of this library by its name; anything else is refused."""
    if name in _GONE:
        raise ValueError(_GONE[name])
    module, _, path = present_name(name).partition(":")
    if not module.startswith("metaprior.") or not path.isidentifier():
        raise ValueError(f"{name!r} is no class of this library")
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
        raise ValueError(f"{name!r} is no part of a model")
    return cls


# --- files ---------------------------------------------------------------------------


def save(estimator: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted estimator to a file; see `Estimator.save`."""
    target = Path(path)
    if target.exists() and not overwrite:
        raise FileExistsError(f"save: {target} exists; give another name, or overwrite=True.")
    writer = _Writer()
    _write(target, {"estimator": writer.estimator(estimator)}, writer.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Return the estimator of a file: it predicts bit for bit what the saved one did.

    Parameters
    ----------
    path : str or path
        A file written by `save`. It may come from a stranger: reading runs no code of the file's.
    """
    source = Path(path)
    writer, content, arrays = _opened(source)
    kind, state = _kind_and_state(content)
    if state is not None:
        raise ValueError(f"load: expected the file of an estimator; {source} holds a state of kind {kind!r}.")
    with _explained(source, writer):
        return _Reader(arrays)._estimator(content["estimator"])


def save_state(path: str | os.PathLike[str], kind: str, state: dict[str, Any]) -> None:
    """Write a state to a file, atomically and in place of the one that is there.

    Parameters
    ----------
    path : str or path
    kind : str
        The kind that `load_state` will ask for.
    state : dict
        Numbers, texts, arrays, estimators and other parts of this library, and lists, tuples and dicts of them.
    """
    writer = _Writer()
    _write(Path(path), {"kind": kind, "state": writer.plain(state)}, writer.arrays)


def load_state(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Return the state that `save_state` wrote; reading runs no code of the file's."""
    source = Path(path)
    writer, content, arrays = _opened(source)
    found, state = _kind_and_state(content)
    if found != kind:
        raise ValueError(f"load: expected a file of kind {kind!r}; {source} is one of {found!r}.")
    with _explained(source, writer):
        return _Reader(arrays).value(state)


def origin(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the format of a file that can be loaded, and the version of the library that wrote it."""
    source = Path(path)
    return {"format": _format(_read(source)[0]), "written_by": _opened(source)[0]}


def _kind_and_state(content: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return what a file holds: the kind of a state and the state, or the class of an estimator and no state."""
    if "state" in content:
        return content["kind"], content["state"]
    held = content["estimator"]
    if held["class"] in STATE_RECORDS:
        return held["params"]["kind"], {"dict": held["state"]}
    return held["class"].partition(":")[2], None


def _write(target: Path, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    from safetensors.numpy import save as to_bytes

    text = json.dumps({**content, "written_by": __version__}, sort_keys=True)
    header = {"format": f"metaprior {FORMAT}", "content": text, "sha256": _digest(text, arrays)}
    write_atomically(target, to_bytes(arrays, metadata=header))


def _opened(source: Path) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Return which version wrote a file, its content as plain things, and its arrays."""
    header, arrays = _read(source)
    if header.get("sha256") != _digest(header["content"], arrays):
        raise ValueError(f"load: {source} was altered after it was written (its digest differs); get another copy.")
    with _explained(source, "of a version that it does not name"):
        content = json.loads(header["content"])
        if _format(header) == 1:
            return FIRST_VERSION, {"estimator": content}, arrays
        return str(content["written_by"]), content, arrays


@contextlib.contextmanager
def _explained(source: Path, writer: str) -> Iterator[None]:
    """Say which version wrote a file where its content is not understood."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"load: {source} was written by metaprior {writer} and holds what {__version__}, the version here, does "
            f"not understand ({error}); load it with the version that wrote it."
        ) from error


def _format(header: dict[str, str]) -> int:
    """Return the version of the format, 0 where the file is of another kind."""
    kind, _, version = header.get("format", "").partition(" ")
    return int(version) if kind == "metaprior" and version.isdigit() else 0


def _read(source: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Return header and arrays of a file, or say what is wrong with it."""
    from safetensors import SafetensorError, safe_open

    if not source.is_file():
        raise FileNotFoundError(f"load: there is no file {source}.")
    try:
        with safe_open(source, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(
            f"load: {source} is no file of metaprior, or is not complete ({error}); get another copy."
        ) from error
    version = _format(header)
    if not version or "content" not in header:
        raise ValueError(f"load: {source} is a safetensors file, but not one of metaprior.")
    if version > FORMAT:
        raise ValueError(f"load: {source} has format {version}, this version reads up to {FORMAT}; update metaprior.")
    return header, arrays


def _digest(text: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
