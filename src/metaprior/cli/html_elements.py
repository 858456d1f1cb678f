"""HTML by construction: whatever is not HTML already is escaped.

`Html` is made in this file only. A text that is put into an element or an attribute is escaped there, so whoever adds
something to a page need not think of it. The page's policy lets a browser load nothing and run nothing.
"""

import base64
import hashlib
import html
from collections.abc import Iterable

#: Elements without content.
VOID = ("br", "img", "meta", "source")
#: The looks that all pages share, with the colours and the type of the documentation site: light and dark, narrow and
#: wide, and on paper.
STYLE = """
:root { color-scheme: light dark; --ink: #222832; --back: #fff; --soft: #48566b; --line: #d1d5da; --card: #f3f4f5;
  --link: #0a7d91; --good: #1f6f3f; --other: #1a5fb4; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #ced6dd; --back: #14181e; --soft: #9ca4af; --line: #48566b;
  --card: #29313d; --link: #3fb1c5; --good: #6cc38b; --other: #7fb4f5; --bad: #f28b82; } }
body { font: 16px/1.65 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3 { line-height: 1.15; font-weight: 600; } h1 { font-size: 2.5rem; } h2 { font-size: 2rem; }
h3 { font-size: 1.5rem; } a { color: var(--link); text-underline-offset: .2em; } code { font-size: .9em; }
section { border-top: 1px solid var(--line); margin-top: 3rem; padding-top: 1rem; }
.soft, caption, figcaption { color: var(--soft); font-size: .9em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; caption-side: bottom; padding-top: .3rem; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.number { white-space: nowrap; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; }
details { background: var(--card); border-radius: 4px; padding: .4rem .8rem; margin: .5rem 0; }
""".strip()


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
    return element("img", alt=alt, src=_address(media_type, content))


def picture(media_type: str, light: bytes, dark: bytes, alt: str) -> Html:
    """Return an image that the page holds itself in two versions, for light and for dark pages."""
    source = element("source", media="(prefers-color-scheme: dark)", srcset=_address(media_type, dark))
    return element("picture", source, image(media_type, light, alt))


def table_element(head: Html, rows: Iterable[Html], *caption: Html) -> Html:
    """Return a table that can be moved sideways where the page is narrow."""
    content = element("table", *caption, element("thead", head), element("tbody", "\n", joined(rows, "\n"), "\n"))
    return wide(content)


def wide(content: Html) -> Html:
    """Return content that can be moved sideways where the page is narrow."""
    return element("div", content, class_="wide")


def _address(media_type: str, content: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


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
