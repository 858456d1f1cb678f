"""The content of a page, read from `result.json` and the figures beside it, and from nothing else."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from metaprior_reproduction.report.numbers import number_text

#: The outcomes of verdicts, in the order in which they are counted.
OUTCOMES = ("agrees", "better", "worse")
MEANING = "Agrees: as the paper claims; better: than it claims; worse: the claim is not met here."
#: With more metrics than this, a table has one row per metric and one column per method.
MOST_COLUMNS = 8
#: The parts of a result that a page needs.
NEEDED = ("id", "title", "claim", "preset", "config", "versions", "seconds", "verdicts", "rows", "paper", "figures")


class Cell(NamedTuple):
    """A cell of a table: our number with its standard error, and the paper's; empty where there is none."""

    ours: str
    paper: str


class Table(NamedTuple):
    """A table of numbers: the heading of the first column, the other headings, and rows of a name and its cells."""

    corner: str
    columns: list[str]
    rows: list[tuple[str, list[Cell]]]


@dataclass(frozen=True)
class Entry:
    """The result of an item and the folder that it is in."""

    result: Mapping[str, Any]
    folder: Path

    @property
    def id(self) -> str:
        """The item's id."""
        return str(self.result["id"])

    def figure(self, name: str, kinds: Sequence[str] = ("svg", "png")) -> Path:
        """Return the file of a figure, in the first of these formats that exists."""
        for kind in kinds:
            if (path := self.folder / f"{name}.{kind}").is_file():
                return path
        raise FileNotFoundError(
            f"{self.folder}: expected the figure {name}.png or {name}.svg beside result.json; there is neither. "
            "Run 'metaprior reproduce' again."
        )

    def counts(self) -> dict[str, int]:
        """Return how many verdicts of each kind there are."""
        return tally([self])

    def table(self) -> Table:
        """Return the table of numbers; if there are many metrics, they are its rows."""
        ours = {row["method"]: row["metrics"] for row in self.result["rows"]}
        methods = list(dict.fromkeys([*ours, *self.result["paper"]]))
        own = (name for metrics in ours.values() for name in metrics)
        metrics = list(dict.fromkeys([*own, *(name for given in self.result["paper"].values() for name in given)]))
        if len(metrics) <= MOST_COLUMNS:
            return Table("method", metrics, [(m, [self._cell(ours, m, name) for name in metrics]) for m in methods])
        return Table("metric", methods, [(name, [self._cell(ours, m, name) for m in methods]) for name in metrics])

    def _cell(self, ours: Mapping[str, Any], method: str, metric: str) -> Cell:
        found = ours.get(method, {}).get(metric)
        paper = self.result["paper"].get(method, {}).get(metric)
        own = "" if found is None else number_text(found["mean"], found["se"])
        return Cell(own, "" if paper is None else f"{paper:g}")


def tally(entries: Sequence[Entry]) -> dict[str, int]:
    """Return how many verdicts of each kind there are."""
    found = [verdict["outcome"] for entry in entries for verdict in entry.result["verdicts"]]
    return {outcome: found.count(outcome) for outcome in OUTCOMES}


def read_entries(folder: Path) -> list[Entry]:
    """Return the results in a folder: the paper's figures and tables by number, its appendix, then all others."""
    paths = sorted(folder.glob("*/result.json"))
    if not paths:
        raise FileNotFoundError(
            f"{folder}: expected results as 'metaprior reproduce ITEM --out {folder}' writes them (ITEM/result.json); "
            "there are none. Run that command first."
        )
    return sorted((_read(path) for path in paths), key=_place)


def _read(path: Path) -> Entry:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        absent = [name for name in NEEDED if name not in result]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is not complete ({error}); run 'metaprior reproduce' again.") from error
    if absent:
        raise ValueError(f"{path}: expected a result of 'metaprior reproduce'; it has no {', '.join(absent)}.")
    return Entry(result, path.parent)


def _place(entry: Entry) -> tuple[int, int, str]:
    title = entry.result["title"]
    numbered = re.match(r"(?:Fig\.|Figure|Table) (\d+)", title)
    if numbered:
        return 0, int(numbered[1]), title
    return (1 if title.lower().startswith("app") else 2), 0, title
