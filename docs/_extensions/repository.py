"""Links between files of the repository, as pages of the site need them.

The pages link to each other and to files beside them as they lie in the repository, where they are read as well.
On the site, some of these files are pages, and folders are named but are no link.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"(?<!!)\[([^\]\[]+)\]\(([^)#\s:]+)(#[^)]*)?\)")
#: Files of the repository that are pages of the site.
PAGES = {
    "README.md": "index",
    "docs/notes/README.md": "notes/index",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "CITATION.cff": "citing",
    "SECURITY.md": "security",
    "CODE_OF_CONDUCT.md": "code-of-conduct",
}
#: Pages that lead to others in the navigation of the site. Some are written by a program, and all are read elsewhere.
CHILDREN = {"results": ("reproduction", "experiments", "datasets")}


def site_link(text: str, inside: str, anchor: str | None) -> str:
    """Return a link to the page of a file; the start page has other sections than the README."""
    return f"[{text}](/{PAGES[inside]}.md{anchor or '' if inside != 'README.md' else ''})"


def with_links_of_the_site(app: Sphinx, name: str, source: list[str]) -> None:
    """Let the links of a page lead to pages of the site, and put pages below others in the navigation."""
    folder = Path(app.env.doc2path(name)).parent

    def replaced(link: re.Match[str]) -> str:
        text, path, anchor = link.groups()
        target = (folder / path).resolve()
        if not target.is_relative_to(ROOT):
            return link.group()
        inside = target.relative_to(ROOT).as_posix()
        if inside in PAGES:
            return site_link(text, inside, anchor)
        return f"`{inside}`" if target.is_dir() else link.group()

    source[0] = LINK.sub(replaced, source[0])
    if name in CHILDREN:
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(CHILDREN[name]) + "\n```\n"


def with_links_from_the_root(app: Sphinx, path: Path, parent: str, source: list[str]) -> None:
    """Let the links of a file from the root of the repository, which a page includes, lead to pages of the site."""
    if (Path(app.srcdir) / path).resolve().parent != ROOT:
        return

    def replaced(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        if target in PAGES:
            return site_link(text, target, anchor)
        if target.startswith("docs/"):
            return f"[{text}](/{target.removeprefix('docs/')}{anchor or ''})"
        return f"`{target}`"

    source[0] = LINK.sub(replaced, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Rewrite links as pages are read."""
    app.connect("source-read", with_links_of_the_site)
    app.connect("include-read", with_links_from_the_root)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
