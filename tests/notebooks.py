"""Notebooks that are written as text: Markdown with a front matter and cells of code, as MyST-NB executes them."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TUTORIALS = sorted(
    path
    for path in (Path(__file__).parents[1] / "docs" / "tutorials").glob("*.md")
    if "{code-cell}" in path.read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class Cell:
    """The options of a cell, as YAML, and its code."""

    options: str
    code: str

    @property
    def alt(self) -> str:
        """What is read instead of the picture, or nothing."""
        found = re.search(r"^mystnb:\n  image:\n    alt: (.+)$", self.options, flags=re.MULTILINE)
        return found[1] if found else ""

    @property
    def draws(self) -> bool:
        """Whether the cell draws a picture."""
        calls = [node.func for node in ast.walk(ast.parse(self.code)) if isinstance(node, ast.Call)]
        names = [func.attr for func in calls if isinstance(func, ast.Attribute)]
        return any(name.startswith("plot") or name == "subplots" for name in names)


@dataclass(frozen=True)
class Notebook:
    """The front matter, the cells and the text between them."""

    front_matter: str
    cells: list[Cell]
    text: str


def read_notebook(path: Path) -> Notebook:
    """Return the parts of a notebook, or raise an error that says what is not as it should be."""
    page = path.read_text(encoding="utf-8")
    found = re.match(r"---\n(.*?)^---\n(.*)\Z", page, flags=re.DOTALL | re.MULTILINE)
    if found is None:
        raise ValueError(f"{path.name}: expected a front matter between two lines of ---; got {page[:40]!r}.")
    pattern = r"^```\{code-cell\} ipython3\n(?:---\n(.*?)^---\n)?(.*?)^```$"
    cells = [Cell(*parts) for parts in re.findall(pattern, found[2], flags=re.DOTALL | re.MULTILINE)]
    text = re.sub(pattern, "", found[2], flags=re.DOTALL | re.MULTILINE)
    if "{code-cell}" in text:
        raise ValueError(
            f"{path.name}: expected cells '```{{code-cell}} ipython3'; got {text.count('{code-cell}')} other."
        )
    return Notebook(found[1], cells, text)


def run_notebook(path: Path) -> dict[str, Any]:
    """Run the cells in their order in one namespace, and return it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(read_notebook(path).cells, 1):
        exec(compile(cell.code, f"{path.name}, cell {number}", "exec"), names)
    return names
