"""The files of figures: only drawings of the kinds that are written, inside the folder of their result.

A page shows an SVG file as an image, so a browser runs no script in it. It is refused nonetheless if it has anything
but what a drawing consists of, because it can be opened by itself.
"""

import re
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from metaprior_reproduction.frame.result import check_inside

#: The largest file, in bytes.
LARGEST_FIGURE = 2**24
MEDIA_TYPES = {"png": "image/png", "svg": "image/svg+xml"}
PNG = b"\x89PNG\r\n\x1a\n"
SVG = "http://www.w3.org/2000/svg"
#: The elements of a drawing, and where its description comes from.
ELEMENTS = (
    *("svg", "g", "defs", "style", "symbol", "use", "clipPath", "mask", "marker", "pattern", "image"),
    *("path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan"),
    *("linearGradient", "radialGradient", "stop", "title", "desc", "metadata"),
)
DESCRIPTIONS = (
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "http://creativecommons.org/ns#",
    "http://purl.org/dc/elements/1.1/",
)
#: What a reference may lead to: a part of the drawing, or an image that it holds itself.
INSIDE = re.compile(r"#|data:image/png;base64,")
OUTSIDE_STYLE = re.compile(r"@import|url\(\s*['\"]?(?!#)", re.IGNORECASE)


class Figure(NamedTuple):
    """The file of a figure, its media type and its content."""

    path: Path
    media_type: str
    content: bytes


def read_figure(path: Path, folder: Path) -> Figure:
    """Return a figure; an error says what is wrong with its file."""
    check_inside(path, folder)
    with path.open("rb") as file:
        content = file.read(LARGEST_FIGURE + 1)
    kind = path.suffix.removeprefix(".")
    if len(content) > LARGEST_FIGURE:
        raise ValueError(f"{path}: expected a figure of at most {LARGEST_FIGURE:,} bytes; it has more. Remove it.")
    if wrong := _fault_of_svg(content) if kind == "svg" else _fault_of_png(content):
        raise ValueError(f"{path}: expected a figure as 'metaprior reproduce' writes it; {wrong}. Remove it.")
    return Figure(path, MEDIA_TYPES[kind], content)


def _fault_of_png(content: bytes) -> str:
    return "" if content.startswith(PNG) else "it is none"


class _NoDrawingError(ValueError):
    """An SVG file has something that is no part of a drawing."""


def _fault_of_svg(content: bytes) -> str:
    """Return what an SVG file has that is no part of a drawing; empty if there is nothing."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = _check_element
    parser.EntityDeclHandler = _check_entity
    parser.ProcessingInstructionHandler = _check_instruction
    parser.buffer_text = True
    parser.CharacterDataHandler = _check_style
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, _NoDrawingError, ValueError, LookupError) as error:
        return f"it has {error}" if isinstance(error, _NoDrawingError) else f"it is none ({error})"
    return ""


def _check_element(name: str, attributes: dict[str, str]) -> None:
    namespace, _, local = name.rpartition(" ")
    if namespace not in DESCRIPTIONS and (namespace != SVG or local not in ELEMENTS):
        raise _NoDrawingError(f"an element {local[:40]!r}")
    for attribute, value in attributes.items():
        local = attribute.rpartition(" ")[2].lower()
        if local.startswith("on") or (local == "href" and not INSIDE.match(value)):
            raise _NoDrawingError(f"an attribute {local[:40]!r} of {value[:40]!r}")
        _check_style(value)


def _check_style(text: str) -> None:
    if OUTSIDE_STYLE.search(text):
        raise _NoDrawingError("a style that leads outside")


def _check_entity(name: str, *_: object) -> None:
    raise _NoDrawingError(f"an entity {name[:40]!r}")


def _check_instruction(target: str, _: str) -> None:
    raise _NoDrawingError(f"an instruction {target[:40]!r}")
