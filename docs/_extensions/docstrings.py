"""Docstrings as reStructuredText: names in backticks are code, and formulas in plain text stay as they are.

A docstring of this project is plain text with backticks, so that it reads well in a terminal. An asterisk, a bar or an
underscore in it is part of a formula and never markup. Long signatures are cut: the table of parameters has everything.
"""

import inspect
import re
from typing import Any

from sphinx.application import Sphinx

#: The head of an entry in a section such as Parameters, which numpydoc reads.
ENTRY = re.compile(r"^\w+(?:, \w+)* :")
#: What lies in backticks, whole.
CODE = re.compile(r"``.+?``|`[^`]+`")
#: In docstrings that scikit-learn's classes hand down: a reference to a page of scikit-learn.
OTHERS = re.compile(r":ref:`([^`<]+)(?:<[^`>]+>)?`")
#: A signature with more parameters is cut after so many ...
MAX_PARAMETERS = 6
#: ... and shows so many of them.
NUM_SHOWN = 3


def as_code(text: str) -> str:
    """Return text in backticks as literal text."""
    return f"``{text.strip('`')}``"


def escaped(text: str) -> str:
    """Return plain text with what would be markup escaped."""
    return re.sub(r"[*|\\]|(?<=\w)_(?!\w)", lambda found: "\\" + found.group(), text)


def plain_line(line: str) -> str:
    """Return a line of a docstring as reStructuredText."""
    head = ENTRY.match(line)
    start = head.end() if head else 0
    parts, last = [line[:start]], start
    for found in CODE.finditer(line, start):
        parts += [escaped(line[last : found.start()]), as_code(found.group())]
        last = found.end()
    return "".join([*parts, escaped(line[last:])])


def from_plain_text(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Turn a docstring of this project into reStructuredText, before numpydoc reads its sections."""
    if (getattr(obj, "__module__", None) or "").startswith("sklearn"):
        lines[:] = [OTHERS.sub(lambda found: f"*{found[1].strip()}*", line) for line in lines]
    else:
        lines[:] = [plain_line(line) for line in lines]


def short_signature(
    app: Sphinx, what: str, name: str, obj: object, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Return a signature that fits in a heading; the section Parameters has all of it."""
    try:
        parameters = [p for p in inspect.signature(obj).parameters.values() if p.name != "self"]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return signature, returned
    if len(parameters) <= MAX_PARAMETERS:
        return signature, returned
    shown = [str(p.replace(annotation=inspect.Parameter.empty)) for p in parameters[:NUM_SHOWN]]
    return f"({', '.join(shown)}, ...)", returned


def without_machinery(app: Sphinx, what: str, name: str, obj: object, skipped: bool, options: Any) -> bool | None:
    """Leave out methods that scikit-learn adds for its routing of metadata."""
    return True if re.fullmatch(r"get_metadata_routing|set_\w+_request", name) else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Read docstrings before numpydoc does (its priority is 500)."""
    app.connect("autodoc-process-docstring", from_plain_text, priority=400)
    app.connect("autodoc-process-signature", short_signature, priority=600)
    app.connect("autodoc-skip-member", without_machinery)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
