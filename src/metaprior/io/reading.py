"""Convert the plain values of a file back to objects of this library; `plain.py` is the other direction.

A description is read value by value (`json_text.py`), and every value is checked as it is built: names of types never
reach NumPy, a class gets what it declares (`declared.py`), and what is built is counted.
"""

import math
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np

from metaprior.inputs import Projection
from metaprior.io.declared import check_fields
from metaprior.io.json_text import ENTRY_BYTES, ITEM_BYTES, LIST_BYTES, NUMBER_BYTES, JSONText
from metaprior.io.plain import class_name, fields_of, named_class, restore_estimator
from metaprior.io.renamed import STATE_RECORDS, present_fields
from metaprior.networks.activations import activation_named

#: Fields that files of earlier versions do not have, and the values that they stand for.
_ADDED: dict[str, dict[str, Any]] = {
    "metaprior.model:Model": {"output": None, "hypers": None},
    "metaprior.weights.metagp:MetaGP": {"output": None},
    "metaprior.weights.mean_field:MeanField": {"log_scales": None},
}
#: The type of an array of texts: objects, or texts of a width.
_TEXT_TYPE = re.compile(r"object|[<>=|]?U([0-9]{1,9})")
#: Members that mean something only together with another one.
_IN_PAIRS = ("class", "fields", "texts", "dtype")
#: Bytes of a generator of random numbers, and of an object without its fields.
_GENERATOR_BYTES, _OBJECT_BYTES = 10_000, 64


class EstimatorParts(NamedTuple):
    """The class of an estimator by its name, its parameters and its state."""

    class_name: str
    params: dict[str, Any]
    state: dict[str, Any]

    @property
    def is_state_record(self) -> bool:
        """Whether this is the state of a loop, in a file of an earlier version."""
        return self.class_name in STATE_RECORDS

    def made(self, *, is_fitted: bool = False) -> Any:
        """Return the estimator, which may have to be fitted."""
        return restore_estimator(*self, is_fitted=is_fitted)


class PlainReader:
    """Read plain values from a text, with the arrays of the file."""

    def __init__(self, text: JSONText, arrays: dict[str, np.ndarray]) -> None:
        self.text, self.arrays = text, arrays
        #: How the content of each kind of plain value is read.
        self.kinds: dict[str, Callable[[], Any]] = {
            "activation": lambda: activation_named(self.text.word()),
            "array": lambda: self.arrays[self.text.word()],
            "class": self.text.word,
            "dict": self.mapping,
            "dtype": self.text.word,
            "estimator": lambda: self.estimator().made(),
            "fields": self.mapping,
            "float": self._float,
            "list": self._list,
            "random_state": self._random_state,
            "range": self._range,
            "scalar": self._scalar,
            "texts": self.text.nested_lists,
            "tuple": self._tuple,
        }

    def value(self) -> Any:
        """Read a value and return what it stands for."""
        if self.text.peek() != "{":
            return self.text.scalar()
        found: dict[str, Any] = {}
        for name in self.text.members():
            if name not in self.kinds:
                raise ValueError(f"unexpected kind {name!r}")
            found[name] = self.kinds[name]()
        if found.keys() == {"class", "fields"}:
            return self._instance(found["class"], found["fields"])
        if found.keys() == {"texts", "dtype"}:
            return self._texts(found["texts"], found["dtype"])
        if len(found) != 1 or not found.keys().isdisjoint(_IN_PAIRS):
            raise ValueError(f"unexpected members {sorted(found)} of a value")
        return next(iter(found.values()))

    def mapping(self) -> dict[str, Any]:
        """Read values by their names."""
        found = {}
        for name in self.text.members():
            self.text.count(ENTRY_BYTES)
            found[name] = self.value()
        self.text.count(sys.getsizeof(found) - ENTRY_BYTES * len(found))
        return found

    def estimator(self) -> EstimatorParts:
        """Read an estimator in its parts."""
        found: dict[str, Any] = {}
        for name in self.text.members():
            found[name] = self.text.word() if name == "class" else self.mapping()
        if found.keys() != {"class", "params", "state"}:
            raise ValueError(f"expected the class, the parameters and the state of an estimator; got {sorted(found)}")
        return EstimatorParts(found["class"], found["params"], found["state"])

    def _instance(self, name: str, given: dict[str, Any]) -> Any:
        """Return an object from its class and its fields."""
        cls = named_class(name)
        fields = present_fields(cls.__name__, given)
        if cls is Projection:
            return cls(**fields)
        if not issubclass(cls, tuple | eqx.Module):
            raise ValueError(f"{name!r} cannot be a part of a model")
        self.text.count(_OBJECT_BYTES + sys.getsizeof(fields))
        if issubclass(cls, tuple):
            check_fields(cls, fields)
            return cls(**fields)
        fields = {**_ADDED.get(class_name(cls), {}), **fields}
        if set(fields) != set(fields_of(cls)):
            raise ValueError(f"the fields of {cls.__name__} are {sorted(fields_of(cls))}, not {sorted(fields)}")
        check_fields(cls, fields)
        made = object.__new__(cls)  # no constructor runs, as when JAX rebuilds a tree
        for field, item in fields.items():
            object.__setattr__(made, field, item)
        return made

    def _float(self) -> float:
        self.text.count(NUMBER_BYTES)
        return float.fromhex(self.text.word())

    def _texts(self, content: Any, dtype: str) -> np.ndarray:
        """Return an array of texts. Its width is that of the file, if the memory for it is there."""
        known = _TEXT_TYPE.fullmatch(dtype)
        texts = np.array(content, dtype=object)
        if known is None or not all(isinstance(item, str) for item in texts.ravel()):
            raise ValueError(f"expected texts; got an array of {dtype[:40]!r}")
        if known.group(1) is None:
            return texts
        width = max([int(known.group(1)), *map(len, texts.ravel())])
        self.text.count(4 * width * texts.size)
        return texts.astype(f"U{width}")

    def _scalar(self) -> Any:
        array = self.value()
        if not isinstance(array, np.ndarray) or array.shape != (1,):
            raise ValueError("expected an array of one number")
        return array[0]

    def _range(self) -> range:
        made = range(*self.text.nested_lists())
        self.text.count(8 * len(made))  # there is a number for every unit that a range counts
        return made

    def _random_state(self) -> np.random.RandomState:
        """Return a generator in a state that it can be in: other states make it read beyond its memory, or hang."""
        self.text.count(_GENERATOR_BYTES)
        name, key, position, has_gauss, gauss = self.value()
        fits = (
            name == "MT19937"
            and isinstance(key, np.ndarray)
            and key.dtype == np.uint32
            and key.shape == (624,)
            and bool(np.any(key[1:]) or key[0] >> 31)
            and type(position) is int
            and 0 <= position <= 624
            and has_gauss in (0, 1)
            and isinstance(gauss, float)
            and math.isfinite(gauss)
        )
        if not fits:
            raise ValueError("a random state is not one of NumPy's generator")
        made = np.random.RandomState()
        made.set_state((name, key, position, has_gauss, gauss))
        return made

    def _list(self) -> list[Any]:
        found = []
        for _ in self.text.items():
            self.text.count(ITEM_BYTES)
            found.append(self.value())
        self.text.count(LIST_BYTES)
        return found

    def _tuple(self) -> tuple[Any, ...]:
        return tuple(self._list())
