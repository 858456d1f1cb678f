"""Results of strangers for the tests of pages: an example is made from the form itself, and every place is attacked."""

import copy
import dataclasses
import itertools
import json
import struct
import types
import zlib
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from markdown_it import MarkdownIt

from metaprior_reproduction.frame.form import AnyFloat, Name
from metaprior_reproduction.frame.result import Result
from metaprior_reproduction.report import read_entries

#: Texts that mean something in HTML, Markdown, a terminal, a file system or JSON.
ATTACKS = {
    "script": "<script>alert(1)</script>",
    "closing": "</p></section></body><script>alert(1)</script>",
    "title": "</title></style><script>alert(1)</script>",
    "image": '<img src=x onerror="alert(1)">',
    "svg": "<svg/onload=alert(1)>",
    "double quote": '" onmouseover="alert(1)" x="',
    "single quote": "' onmouseover='alert(1)' x='",
    "no quote": "x onmouseover=alert(1)",
    "comment": "<!-- --><b>x</b><!--",
    "cdata": "<![CDATA[<b>x</b>]]>",
    "instruction": "<?php echo 1 ?>",
    "entity": "&lt;script&gt; &#60;b&#62; &amp;",
    "template": "{{7*7}} ${7*7} <%= 7*7 %>",
    "style": "<style>@import 'https://evil.example/x'</style>",
    "javascript": "javascript:alert(1)",
    "autolink": "<javascript:alert(1)> <https://evil.example>",
    "address": "https://evil.example/?q=1 http://evil.example www.evil.example a@evil.example",
    "link": "[click](javascript:alert(1))",
    "markdown image": "![x](https://evil.example/x.png)",
    "reference": "[x]: https://evil.example 'x'",
    "use of a reference": "[x][x] and [x]",
    "footnote": "[^1] [^1]: x",
    "cell": "a | b | c",
    "row": "a |\n| --- | --- |\n| b |",
    "heading": "# Heading",
    "later heading": "x\n\n# Heading\n\nx",
    "underline": "x\n===\ny\n---\n",
    "list": "- item\n- item",
    "number": "1. item",
    "bracketed number": "2) item",
    "plus": "+ item",
    "quotation": "> quotation",
    "rule": "---",
    "stars": "*** **bold** *x* __y__ ~~z~~",
    "code": "`code` ``x`` ```",
    "fence": "```\ncode\n```",
    "tildes": "~~~\ncode\n~~~",
    "indented": "\n\n    code\n\n",
    "html block": "\n\n<div onclick=alert(1)>\n\nx\n\n</div>",
    "details": "</summary></details><script>alert(1)</script>",
    "backslashes": "\\ \\\\ \\[x\\](y) \\<b> \\`x` a\\",
    "exclamation": "wow!",
    "formula": "$x$ $$\\href{javascript:alert(1)}{x}$$",
    "colour of a terminal": "\x1b[31mred\x1b[0m",
    "title of a terminal": "\x1b]0;x\x07",
    "controls": "a\x08\x08b\x0bc\x9b31m",
    "nul": "a\0b",
    "surrogate": "\ud800",
    "escaped byte": "\udcff",
    "reordered": "\u202ecod.exe\u202c \u2066x\u2069",
    "line separators": "a\u2028b\u2029c\x85d",
    "ends of lines": "a\r\nb\rc\n\td",
    "long": "x" * 19_000,
    "too long": "x" * 10**6,
    "path": "../../outside",
    "absolute": "/etc/passwd",
    "windows": "..\\..\\outside",
    "hidden": ".bashrc",
    "option": "--force",
    "large number": "9" * 5000,
    "figure": "Figure " + "9" * 5000,
    "format": "%s %n {0} {x!r}",
    "prototype": "__proto__",
}


def example(kind: Any, numbers: Iterator[int]) -> Any:
    """Return a value of the form; every text in it is another one."""
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return {field.name: example(hints[field.name], numbers) for field in dataclasses.fields(kind)}
    if origin is tuple:
        return [example(inner[0], numbers)]
    if origin is Mapping:
        return {f"key{next(numbers)}": example(inner[1], numbers)}
    if origin is types.UnionType:
        return example(inner[0], numbers)
    if origin is Literal:
        return inner[0]
    if kind is Any:
        return ["text", {f"key{next(numbers)}": f"text{next(numbers)}"}, 1.5]
    return {str: f"text{next(numbers)}", Name: f"name{next(numbers)}", int: 1, float: 1.5, AnyFloat: 1.5}[kind]


def good_result() -> dict[str, Any]:
    """Return a result that has every field of the form."""
    found = example(Result, itertools.count())
    found["config"]["seeds"] = 2
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path to every leaf, and to every key that is no field of a form (which ends in None)."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key.startswith("key"):
                yield (*path, key, None)
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from places(item, (*path, number))
    else:
        yield path


def attacked(result: dict[str, Any], path: tuple[Any, ...], attack: Any) -> dict[str, Any]:
    """Return a result with something else in one place."""
    found = copy.deepcopy(result)
    is_key = path[-1] is None
    *way, last = path[:-1] if is_key else path
    inner = found
    for step in way:
        inner = inner[step]
    if is_key:
        content = {attack if key == last else key: item for key, item in inner.items()}
        inner.clear()
        inner.update(content)
    else:
        inner[last] = attack
    return found


def png() -> bytes:
    """Return a PNG of one pixel."""
    parts = (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)), (b"IDAT", zlib.compress(b"\0\0")), (b"IEND", b"")
    chunks = (struct.pack(">I", len(c)) + k + c + struct.pack(">I", zlib.crc32(k + c)) for k, c in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def outcome(folder: Path, result: object, page_of: Callable[[Any], str]) -> tuple[str, str]:
    """Return the page of a result and no error, or no page and the error."""
    write_result(folder, result)
    try:
        return page_of(read_entries(folder)), ""
    except (ValueError, FileNotFoundError) as error:
        return "", str(error)


def told_in_a_line(error: str) -> bool:
    """Return whether an error is of moderate length and can be printed on any terminal."""
    return len(error) < 700 and all(character.isprintable() for character in error)


def write_result(folder: Path, result: Any) -> Path:
    """Write a result with its figures into a folder of results, and return its own folder."""
    own = folder / "item"
    own.mkdir(parents=True, exist_ok=True)
    for name in good_result()["figures"]:
        (own / f"{name}.png").write_bytes(png())
    (own / "result.json").write_text(json.dumps(result), encoding="utf-8")
    return own


# --- what a page consists of -------------------------------------------------------------


class Structure(HTMLParser):
    """The elements of a page with their attributes (but descriptions of images), comments and such, and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.parts: list[Any] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.parts.append((tag, [(name, "" if name == "alt" else value) for name, value in attrs]))

    def handle_endtag(self, tag):
        self.parts.append(f"/{tag}")

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        self.parts.append(("comment", data))

    def handle_decl(self, decl):
        self.parts.append(("declaration", decl))

    def unknown_decl(self, data):
        self.parts.append(("declaration", data))

    def handle_pi(self, data):
        self.parts.append(("instruction", data))


READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def markdown_structure(page: str) -> tuple[list[Any], str]:
    """Return what a Markdown page consists of beside its text, and the text."""
    parts, texts = [], []

    def walk(tokens):
        for token in tokens:
            if token.type in ("text", "code_inline"):
                texts.append(token.content)
            if token.type != "text":
                content = token.content if token.type in ("code_inline", "html_block", "html_inline", "fence") else ""
                parts.append((token.type, token.tag, dict(token.attrs), content))
            walk(token.children or [])

    walk(READER.parse(page))
    return [part if part[0] != "image" else (*part[:2], part[2]["src"]) for part in parts], "".join(texts)
