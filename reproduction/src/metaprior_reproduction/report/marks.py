"""Markdown by construction: whatever is not Markdown already is escaped.

`Markdown` is made in this file only. A text stands on one line, and no character of it means anything: not in a line,
at its start, in a table, in a link, or to GitHub, which makes links of addresses and formulas between dollars.
"""

import html
import os
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

#: Characters that mean something inside a line; an `&` does before a letter, a `!` before a bracket.
_INSIDE = re.compile(r"[\\`*_|<>\[\]~$@]|&(?=[#A-Za-z])|!$|:(?=//)|(?<=www)\.", re.IGNORECASE)
#: What means something at the start of a block: a heading, a list, a line.
_AT_START = re.compile(r"^([#+=:-]|\d+(?=[.)]))")


class Markdown(str):
    """Text that is Markdown."""

    __slots__ = ()


def as_written(text: str) -> Markdown:
    """Return a text that the user of the program wrote as Markdown."""
    return Markdown(text)


def inline(*parts: object) -> Markdown:
    """Return parts one after the other in a line; what is not Markdown is text."""
    return Markdown("".join(part if isinstance(part, Markdown) else _escaped(str(part)) for part in parts))


def paragraph(*parts: object) -> Markdown:
    """Return a paragraph; nothing at its start makes something else of it."""
    return Markdown(_AT_START.sub(_with_backslash, inline(*parts).strip()))


def bold(*parts: object) -> Markdown:
    """Return bold text."""
    return Markdown(f"**{inline(*parts).strip()}**")


def code(text: str) -> Markdown:
    """Return a text of the program as code."""
    return Markdown(f"`{text.replace('`', '')}`")


def heading(level: int, *parts: object) -> Markdown:
    """Return a heading."""
    return Markdown(f"{'#' * level} {inline(*parts)}")


def bullets(items: Iterable[Markdown]) -> Markdown:
    """Return a list of paragraphs."""
    return Markdown("\n".join(f"- {paragraph(item)}" for item in items))


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Markdown:
    """Return a table."""
    lines = [head, [Markdown("---")] * len(head), *rows]
    return Markdown("\n".join(f"| {' | '.join(map(inline, line))} |" for line in lines))


def link(text: object, path: str) -> Markdown:
    """Return a link to a file."""
    return Markdown(f"[{inline(text)}]({_address(path)})")


def anchor(name: str) -> Markdown:
    """Return a link to a heading of the same page."""
    return Markdown(f"[{inline(name)}](#{quote(name, safe='')})")


def image(text: object, path: str) -> Markdown:
    """Return the image in a file."""
    return Markdown(f"!{link(text, path)}")


def folded(summary: str, content: Markdown) -> Markdown:
    """Return content that is shown when its summary is clicked."""
    return Markdown(f"<details><summary>{html.escape(summary)}</summary>\n\n{content}\n\n</details>")


def joined(blocks: Iterable[Markdown]) -> Markdown:
    """Return blocks with empty lines between them; empty blocks are left out."""
    return Markdown("\n\n".join(block for block in blocks if block))


def _escaped(text: str) -> str:
    return _INSIDE.sub(_with_backslash, re.sub(r"\s+", " ", text))


def _with_backslash(found: "re.Match[str]") -> str:
    """Return what was found so that it means nothing; after a number, the backslash stands behind it."""
    return f"{found[0]}\\" if found[0][0].isdigit() else f"\\{found[0]}"


def _address(path: str) -> str:
    """Return the address of a file, in which nothing but slashes means anything."""
    return quote(os.fsencode(path.replace(os.sep, "/")))
