"""HTML by construction: whatever is not HTML already is escaped.

`Html` is made in this file only. A text that is put into an element or an attribute is escaped there, so whoever adds a
field of a result to the page need not think of it. The page's policy lets a browser load nothing and run nothing.
"""

import base64
import hashlib
import html
from collections.abc import Iterable

#: Elements without content.
VOID = ("br", "img", "meta")


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


def escaped(content: object) -> Html:
    """Return content as HTML: as it is if it is HTML, and else as text."""
    return content if isinstance(content, Html) else Html(html.escape(str(content)))


def joined(parts: Iterable[object], separator: str = "") -> Html:
    """Return parts one after the other, with a text between them."""
    return Html(escaped(separator).join(escaped(part) for part in parts))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """Return an element; an attribute may be given with an underscore at its end, such as `class_`."""
    given = "".join(f' {name.rstrip("_")}="{escaped(str(value))}"' for name, value in attributes.items())
    return Html(f"<{tag}{given}>" if tag in VOID else f"<{tag}{given}>{joined(content)}</{tag}>")


def image(media_type: str, content: bytes, alt: str) -> Html:
    """Return an image that the page holds itself; scripts in an image are not run."""
    return element("img", alt=alt, src=f"data:{media_type};base64,{base64.b64encode(content).decode()}")


def document(title: str, style: str, *body: object) -> Html:
    """Return a page with a style sheet, which is the program's own."""
    sheet = f"\n{style}\n"
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = joined(
        [
            element("meta", charset="utf-8"),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("title", title),
            Html(f"<style>{sheet}</style>"),
        ],
        "\n",
    )
    content = joined([element("head", head), element("body", "\n", joined(body, "\n"), "\n")], "\n")
    return Html(f"<!doctype html>\n{element('html', content, lang='en')}\n")
