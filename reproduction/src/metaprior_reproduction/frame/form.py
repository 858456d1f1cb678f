"""What is read from a file, checked against a form that is declared once.

Results may come from strangers. A form is a frozen dataclass, and the annotation of a field says what may stand there:

| annotation | what may stand there |
|---|---|
| `str` | text without control characters, of bounded length |
| `Name` | letters, digits, - and _: what becomes the name of a file or of a place in a page |
| `int` | a whole number, not negative |
| `float`, `float or None` | a finite number |
| `AnyFloat` | a number, finite or not |
| `Literal[...]` | one of these texts |
| `tuple[X, ...]`, `Mapping[str, X]` | a list of X; X by text |
| a dataclass | a mapping with its fields; others are left out |
| `Any` | whatever JSON can hold, with such texts in it |
"""

import dataclasses
import json
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NewType, TypeVar, get_args, get_origin, get_type_hints

Name = NewType("Name", str)
AnyFloat = NewType("AnyFloat", float)
Form = TypeVar("Form")

#: The longest text and the longest name, in characters; how deep values are nested; the largest whole number.
LONGEST_TEXT, LONGEST_NAME, DEEPEST, LARGEST = 20_000, 100, 10, 2**53
#: The largest file, in bytes.
LARGEST_FILE = 2**24
#: Characters that are not text: controls (but tabs and ends of lines), halves of others, and marks that reorder a line.
_NO_TEXT = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


class FormError(ValueError):
    """What is read does not have the form that it should have."""


def read_json(path: Path) -> Any:
    """Return the content of a JSON file of bounded size, in which all numbers are finite."""
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise FormError(f"expected at most {LARGEST_FILE:,} bytes; it has more")
    return parsed(content, allow_nan=False)


def parsed(content: str | bytes, *, allow_nan: bool) -> Any:
    """Return the value of a JSON text."""

    def constant(text: str) -> float:
        if not allow_nan:
            raise FormError(f"expected finite numbers; got {text}")
        return float(text)

    try:
        return json.loads(content, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise FormError(f"expected JSON; {error}") from error


def checked(form: type[Form], value: Any, place: str = "") -> Form:
    """Return a value as an instance of a dataclass; a `FormError` says where it does not have the form."""
    if not isinstance(value, dict):
        raise _unexpected(place, "a mapping", value)
    kinds = get_type_hints(form)
    fields = dataclasses.fields(form)  # type: ignore[arg-type]
    absent = [repr(f.name) for f in fields if f.name not in value and _is_required(f)]
    if absent:
        raise FormError(f"{place or 'it'} has no {', '.join(absent)}")
    found = {f.name: _checked(kinds[f.name], value[f.name], _join(place, f.name)) for f in fields if f.name in value}
    return form(**found)


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _checked(kind: Any, value: Any, place: str) -> Any:
    """Return a value of a kind, which is an annotation."""
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        return checked(kind, value, place)  # type: ignore[arg-type]
    if origin is tuple:
        return tuple(_checked(inner[0], item, f"{place}[{number}]") for number, item in _items(value, place))
    if origin is Mapping:
        return {key: _checked(inner[1], item, _join(place, key)) for key, item in _pairs(value, place)}
    if origin is types.UnionType:  # X | None
        return None if value is None else _checked(inner[0], value, place)
    if origin is Literal:
        if value not in inner:
            raise _unexpected(place, f"one of {', '.join(inner)}", value)
        return value
    return _anything(value, place) if kind is Any else _LEAVES[kind](value, place)


def _items(value: Any, place: str) -> Iterable[tuple[int, Any]]:
    if not isinstance(value, list):
        raise _unexpected(place, "a list", value)
    return enumerate(value)


def _pairs(value: Any, place: str) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise _unexpected(place, "a mapping", value)
    return [(_text(key, f"a name in {place}"), item) for key, item in value.items()]


def _anything(value: Any, place: str, depth: int = 0) -> Any:
    """Return what JSON can hold as it is, if its texts are texts and its numbers finite."""
    if depth > DEEPEST:
        raise FormError(f"{place}: expected values that are nested at most {DEEPEST} times")
    if isinstance(value, list):
        return [_anything(item, f"{place}[{number}]", depth + 1) for number, item in _items(value, place)]
    if isinstance(value, dict):
        return {key: _anything(item, _join(place, key), depth + 1) for key, item in _pairs(value, place)}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, place)
    _finite(value, place)
    return value


# --- single values ------------------------------------------------------------------------


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise _unexpected(place, "text", value)
    if len(value) > LONGEST_TEXT:
        raise _unexpected(place, f"text of at most {LONGEST_TEXT:,} characters", value)
    if wrong := _NO_TEXT.search(value):
        raise _unexpected(place, "text without control characters", wrong[0])
    return value


def check_name(value: Any, place: str) -> Name:
    """Return a text that can be the name of a file or of a place in a page, or raise."""
    if not isinstance(value, str) or len(value) > LONGEST_NAME or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", value):
        raise _unexpected(place, f"a name of at most {LONGEST_NAME} letters, digits, - and _", value)
    return Name(value)


def _whole(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
        raise _unexpected(place, "a whole number, not negative", value)
    return value


def _any_float(value: Any, place: str) -> AnyFloat:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return AnyFloat(float(value))
    except OverflowError:
        pass
    raise _unexpected(place, "a number", value)


def _finite(value: Any, place: str) -> float:
    found = _any_float(value, place)
    if not math.isfinite(found):
        raise _unexpected(place, "a finite number", value)
    return found


_LEAVES: dict[Any, Callable[[Any, str], Any]] = {
    str: _text,
    Name: check_name,
    int: _whole,
    float: _finite,
    AnyFloat: _any_float,
}


def _join(place: str, name: str) -> str:
    return f"{place}.{short(name)}" if place else short(name)


def _unexpected(place: str, expected: str, value: Any) -> FormError:
    return FormError(f"{place or 'it'}: expected {expected}; got {short(ascii(value))}")


def short(text: str) -> str:
    """Return a text that fits into a message."""
    return text if len(text) <= 60 else f"{text[:60]}..."
