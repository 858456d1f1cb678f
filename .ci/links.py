"""Check the pages of the built site: links lead somewhere, and nothing is loaded from another host.

`python .ci/links.py FOLDER` reads every page of a folder of HTML. A link or an anchor inside the site must exist. What
a browser loads when a page is opened (scripts, styles, pictures, fonts) must lie in the folder, because the site is
read offline. Pictures need a text for those who do not see them, and pages a title and a language. A notebook shows
the pictures that its source in `docs` describes: cells that draw elsewhere would be built without a word.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

DOCS = Path(__file__).parents[1] / "docs"
#: What a browser loads without being asked, by element and attribute.
LOADED = {
    ("audio", "src"), ("embed", "src"), ("iframe", "src"), ("img", "src"), ("img", "srcset"), ("input", "src"),
    ("link", "href"), ("object", "data"), ("script", "src"), ("source", "src"), ("source", "srcset"), ("video", "src"),
    ("video", "poster"),
}  # fmt: skip
#: Links of the head that name a page and load nothing.
NOT_LOADED = {"author", "canonical", "copyright", "help", "index", "next", "prev", "search", "up"}
IN_STYLES = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


@dataclass
class Page(HTMLParser):
    """What a page refers to: anchors that it has, links, what it loads, and pictures without a text."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    mute: list[str] = field(default_factory=list)
    has_cells: bool = False
    language: str = ""
    title: str = ""
    inside: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element refers to."""
        given = {name: value or "" for name, value in attrs}
        self.inside = tag
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        self.has_cells |= "cell_input" in given.get("class", "").split()
        if tag == "html":
            self.language = given.get("lang", "")
        if tag == "img" and "alt" not in given:
            self.mute.append(given.get("src", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        names_a_page = tag == "link" and set(given.get("rel", "").split()) <= NOT_LOADED
        for name, value in given.items():
            if (tag, name) in LOADED and not names_a_page:
                self.loaded += [part.split()[0] for part in value.split(",")] if name == "srcset" else [value]
        self.loaded += urls_of_style(given.get("style", ""))

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        self.inside = ""

    def handle_data(self, data: str) -> None:
        """Read the title and what a style sheet in the page loads."""
        if self.inside == "title" and not self.title:
            self.title = data.strip()
        if self.inside == "style":
            self.loaded += urls_of_style(data)


def urls_of_style(css: str) -> list[str]:
    """Return what a style sheet loads."""
    return [first or second for first, second in IN_STYLES.findall(css)]


def read_pages(folder: Path) -> dict[Path, Page]:
    """Return all pages below a folder, by their paths; a theme may leave a template among its static files."""
    pages = {}
    for path in sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts):
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.resolve()] = page
    return pages


def problem_of_link(link: str, path: Path, pages: dict[Path, Page], folder: Path) -> str | None:
    """Return what is wrong with a link of a page, or None."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.is_relative_to(folder):
        return f"the link {link} leads out of the site"
    if not target.exists():
        return f"the link {link} leads nowhere"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return f"the link {link} leads to an anchor that {target.name} does not have"
    return None


def problem_of_load(url: str, path: Path, folder: Path) -> str | None:
    """Return what is wrong with something that a page or a style sheet loads, or None."""
    parts = urlsplit(url)
    if parts.scheme == "data":
        return None
    if parts.scheme or parts.netloc:
        return f"it loads {url} from another host"
    if not parts.path:
        return None
    target = (path.parent / unquote(parts.path)).resolve()
    return None if target.is_relative_to(folder) and target.exists() else f"it loads {url}, which does not exist"


def problem_of_pictures(page: Page, source: Path) -> str | None:
    """Return what is wrong with the number of pictures of a notebook, or None."""
    shown = sum("_images/" in url for url in page.loaded)
    described = len(re.findall(r"^ +alt: ", source.read_text(encoding="utf-8"), flags=re.MULTILINE))
    return None if shown >= described else f"it shows {shown} of the {described} pictures that its source describes"


def problems(folder: Path) -> Iterator[str]:
    """Yield a sentence for everything that is wrong in a built site."""
    folder = folder.resolve()
    pages = read_pages(folder)
    if not pages:
        yield f"{folder}: expected pages of HTML; found none."
    for path, page in pages.items():
        name = path.relative_to(folder)
        found = [problem_of_link(link, path, pages, folder) for link in page.links]
        found += [problem_of_load(url, path, folder) for url in page.loaded]
        found += [f"the picture {source} has no text (alt)" for source in page.mute]
        found.append(problem_of_pictures(page, DOCS / name.with_suffix(".md")) if page.has_cells else None)
        found += [f"it has no {what}" for what in ("title", "language") if not getattr(page, what)]
        yield from (f"{name}: {problem}." for problem in dict.fromkeys(found) if problem)
    for path in sorted(folder.rglob("*.css")):
        found = [problem_of_load(url, path, folder) for url in urls_of_style(path.read_text(encoding="utf-8"))]
        yield from (f"{path.relative_to(folder)}: {problem}." for problem in dict.fromkeys(found) if problem)


if __name__ == "__main__":
    site = Path(sys.argv[1])
    wrong = list(problems(site))
    if wrong:
        sys.exit("\n".join([*wrong, f"{len(wrong)} problems in {site}."]))
    print(f"All links and files of {len(read_pages(site))} pages in {site} exist.")
