"""Docstrings with every parameter: what an estimator shares with another is described once, and shown by both."""

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=type)

#: The first line of an entry: one name or several, and a type.
ENTRY = re.compile(r"^(\w+(?:, \w+)*) :")


def documented_like(*others: type) -> Callable[[C], C]:
    """Complete the section of parameters of a class by the entries of others, the first that has a name."""

    def complete(cls: C) -> C:
        doc = inspect.cleandoc(cls.__doc__ or "")
        own = entries(doc)
        known = {name: entry for other in reversed(others) for name, entry in entries(other.__doc__ or "").items()}
        missing = [name for name in inspect.signature(cls).parameters if name not in own]
        unknown = [name for name in missing if name not in known]
        if unknown:
            raise TypeError(f"{cls.__name__}: expected every parameter to be described; {unknown} are not.")
        cls.__doc__ = _with_entries(doc, list(dict.fromkeys(known[name] for name in missing)))
        return cls

    return complete


def entries(doc: str) -> dict[str, str]:
    """Return the entries of the section of parameters, by name; one that describes several names is under each."""
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n\w+\n-+\n|\Z)", inspect.cleandoc(doc), re.S)
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.group(1).splitlines() if section else []:
        start = ENTRY.match(line)
        names = start.group(1).split(", ") if start else names
        found |= {name: line if start else f"{found[name]}\n{line}" for name in names}
    return {name: entry.rstrip() for name, entry in found.items()}


def _with_entries(doc: str, added: list[str]) -> str:
    """Return a docstring with entries at the end of its section of parameters, or with a section of them."""
    if not added:
        return doc
    text = "\n".join(added)
    section = re.search(r"Parameters\n-+\n.*?(?=\n\n\w+\n-+\n|\Z)", doc, re.S)
    if section:
        return f"{doc[: section.end()].rstrip()}\n{text}{doc[section.end() :]}"
    after = re.search(r"\n\n\w+\n-+\n", doc)
    end = after.start() if after else len(doc)
    return f"{doc[:end].rstrip()}\n\nParameters\n----------\n{text}{doc[end:]}"
