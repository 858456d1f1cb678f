"""JSON from untrusted sources, read value by value.

`json.loads` builds a whole tree before anything is checked, and the tree can take fifty times the memory of its text.
Here the caller takes one value after the other and converts it at once. What it keeps is counted, and both the count
and the depth are limited.
"""

import contextlib
import re
from collections.abc import Iterator
from json import JSONDecoder
from typing import Any

#: The deepest nesting that is read. Models nest about twenty levels deep.
MOST_LEVELS = 100
#: Bytes that CPython takes for a number, a text without its characters, a list without its items, and an item.
NUMBER_BYTES, TEXT_BYTES, LIST_BYTES, ITEM_BYTES = 32, 64, 72, 9
#: Bytes that an entry of a set or a dict takes, and a name that is remembered, without its characters.
ENTRY_BYTES, NAME_BYTES = 100, 160

#: Characters of a string that is looked at before it is decoded.
LONG_STRING = 10_000

_DECODER = JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_WHOLE = re.compile(r"(?:0|-?[1-9][0-9]{0,3999})(?![0-9.eE])")
_WORDS = {"n": ("null", None), "t": ("true", True), "f": ("false", False)}


class JSONText:
    """A position in a text, and the methods that read the value there.

    Parameters
    ----------
    text : str
    most_bytes : int
        The memory that all that is built from this text may take. Beyond it, reading raises an error.
    """

    def __init__(self, text: str, most_bytes: int) -> None:
        self._text, self._place, self._level = text, 0, 0
        self._left, self._names = most_bytes, dict[str, str]()
        self._has_letters = "\\u" in text

    def count(self, num_bytes: int) -> None:
        """Count memory for something that is built. Strings, numbers and nested lists count themselves."""
        self._left -= num_bytes
        if self._left < 0:
            raise ValueError("its description would take many times the memory of the file")

    def peek(self) -> str:
        """Return the next character that is not white space, or nothing at the end."""
        self._place = _SPACE.match(self._text, self._place).end()  # type: ignore[union-attr]
        return self._text[self._place : self._place + 1]

    def string(self) -> str:
        """Read a string."""
        found = self.word()
        self.count(TEXT_BYTES + (len(found) if found.isascii() else 4 * len(found)))
        return found

    def word(self) -> str:
        """Read a string that the caller does not keep: it does not count."""
        if self.peek() != '"':
            raise ValueError(f"expected a string at place {self._place}; got {self._ahead()!r}")
        if self._has_letters:
            self._count_wide()
        found, self._place = _DECODER.raw_decode(self._text, self._place)
        return found

    def _count_wide(self) -> None:
        """Count a long string before it is decoded: with one letter beyond ASCII, all its letters take four bytes."""
        end = self._text.find('"', self._place + 1)
        while end > 0 and self._text[end - 1] == "\\":
            end = self._text.find('"', end + 1)
        if end - self._place > LONG_STRING and self._text.find("\\u", self._place, end) >= 0:
            self.count(4 * (end - self._place))

    def scalar(self) -> str | int | bool | None:
        """Read a string, a whole number, true, false or null. Other numbers are an error."""
        first = self.peek()
        if first == '"':
            return self.string()
        if first in _WORDS:
            word, value = _WORDS[first]
            if self._text.startswith(word, self._place):
                self._place += len(word)
                return value
        whole = _WHOLE.match(self._text, self._place)
        if whole is None:
            raise ValueError(f"unexpected text {self._ahead()!r}")
        self._place = whole.end()
        self.count(NUMBER_BYTES)
        return int(whole.group())

    def members(self) -> Iterator[str]:
        """Read an object: yield its names. The caller reads the value of a name before it asks for the next."""
        seen = set()
        with self._container("{"):
            for _ in self._entries("}"):
                name = self._name()
                if name in seen:
                    raise ValueError(f"the name {name!r} is given twice")
                seen.add(name)
                self.count(ENTRY_BYTES)  # of this set, until the object ends
                self._take(":")
                yield name
        self.count(-ENTRY_BYTES * len(seen))

    def items(self) -> Iterator[None]:
        """Read a list: yield once for every item, which the caller reads before it asks for the next."""
        with self._container("["):
            yield from self._entries("]")

    def nested_lists(self) -> Any:
        """Read a list of scalars, or of such lists."""
        if self.peek() != "[":
            return self.scalar()
        found = []
        self.count(LIST_BYTES)
        for _ in self.items():
            self.count(ITEM_BYTES)
            found.append(self.nested_lists())
        return found

    def end(self) -> None:
        """Raise an error unless the text ends here."""
        if self.peek():
            raise ValueError(f"unexpected text {self._ahead()!r}")

    def _name(self) -> str:
        """Read a name. Equal names are one string."""
        found = self.word()
        if found not in self._names:
            self.count(NAME_BYTES + 4 * len(found))
        return self._names.setdefault(found, found)

    def _ahead(self) -> str:
        return self._text[self._place : self._place + 20]

    def _take(self, character: str) -> None:
        if self.peek() != character:
            raise ValueError(f"expected {character!r} at place {self._place}; got {self._ahead()!r}")
        self._place += 1

    @contextlib.contextmanager
    def _container(self, opening: str) -> Iterator[None]:
        self._take(opening)
        self._level += 1
        if self._level > MOST_LEVELS:
            raise ValueError(f"it is nested more than {MOST_LEVELS} levels deep")
        yield
        self._level -= 1

    def _entries(self, closing: str) -> Iterator[None]:
        """Yield before every entry of a container, and read what separates and ends them."""
        if self.peek() == closing:
            self._place += 1
            return
        while True:
            yield
            if self.peek() == closing:
                self._place += 1
                return
            self._take(",")
