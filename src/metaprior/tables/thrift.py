"""Structs in Thrift's compact form, in which Parquet files describe themselves.

A struct is a row of fields, each with a number, a kind and a value, and ends with a zero. Only what the descriptions of
Parquet files consist of is read. Whatever is not of that form is an error.
"""

from typing import Any, NamedTuple

#: Kinds of values.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
#: How deep structs and lists may be nested.
DEEPEST = 12


class Value(NamedTuple):
    """A value with its kind; a list has the kind of its items too."""

    kind: int
    value: Any
    items: int = 0


class Struct(NamedTuple):
    """The fields of a struct by their numbers, and the place after its end."""

    fields: dict[int, Value]
    end: int

    def number(self, field: int, kind: int) -> int:
        """Return a size, a count or a place, which is never negative; 0 if the field is absent."""
        found = int(self._value(field, kind, 0))
        if found < 0:
            raise _other_form()
        return found

    def text(self, field: int) -> str:
        """Return a text; empty if the field is absent."""
        return str(self._value(field, BINARY, b"").decode())

    def struct(self, field: int) -> "Struct":
        """Return a struct; one without fields if the field is absent."""
        found: Struct = self._value(field, STRUCT, Struct({}, 0))
        return found

    def structs(self, field: int) -> "list[Struct]":
        """Return a list of structs; empty if the field is absent."""
        if field in self.fields and self.fields[field].items != STRUCT:
            raise _other_form()
        return list(self._value(field, LIST, []))

    def _value(self, field: int, kind: int, absent: Any) -> Any:
        found = self.fields.get(field, Value(kind, absent))
        if found.kind != kind:
            raise _other_form()
        return found.value


def read_struct(data: bytes, place: int = 0, depth: int = 0) -> Struct:
    """Return the struct at a place; an IndexError means that the data end before it does."""
    fields: dict[int, Value] = {}
    number = 0
    while head := data[place]:
        place += 1
        if head >> 4:
            number += head >> 4
        else:
            number, place = _integer(data, place)
        if not 0 < number < 2**15:
            raise _other_form()
        fields[number], place = _read(data, place, head & 15, depth)
    return Struct(fields, place + 1)


def _read(data: bytes, place: int, kind: int, depth: int) -> tuple[Value, int]:
    """Return the value of a field and the place after it."""
    if kind in (TRUE, FALSE):
        return Value(TRUE, kind == TRUE), place
    if kind in (I16, I32, I64):
        whole, place = _integer(data, place)
        return Value(kind, whole), place
    if kind == BINARY:
        length, place = _unsigned(data, place)
        if place + length > len(data):
            raise IndexError("the data end in a text")
        return Value(kind, data[place : place + length]), place + length
    if kind in (BYTE, DOUBLE):
        return Value(kind, None), place + (1 if kind == BYTE else 8)
    if kind == STRUCT and depth < DEEPEST:
        struct = read_struct(data, place, depth + 1)
        return Value(kind, struct), struct.end
    if kind in (LIST, SET) and depth < DEEPEST:
        return _list(data, place, depth + 1)
    raise _other_form()


def _list(data: bytes, place: int, depth: int) -> tuple[Value, int]:
    """Return a list and the place after it: its length and the kind of its items, then the items."""
    length, kind, place = data[place] >> 4, data[place] & 15, place + 1
    if length == 15:
        length, place = _unsigned(data, place)
    found = []
    for _ in range(length):
        if kind in (TRUE, FALSE):  # an item of this kind is a byte
            item, place = Value(TRUE, data[place] == TRUE), place + 1
        else:
            item, place = _read(data, place, kind, depth)
        found.append(item.value)
    return Value(LIST, found, kind), place


def _integer(data: bytes, place: int) -> tuple[int, int]:
    """Return a number with a sign, which its lowest bit says."""
    found, place = _unsigned(data, place)
    return (found >> 1) ^ -(found & 1), place


def _unsigned(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, the lowest first; the eighth bit says that more follow."""
    found = 0
    for shift in range(0, 64, 7):
        found |= (data[place] & 127) << shift
        place += 1
        if data[place - 1] < 128:
            return found, place
    raise _other_form()


def _other_form() -> ValueError:
    return ValueError("its description is of another form")
