"""The content of a page, read from `result.json` and the figures beside it, and from nothing else."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, get_args, get_type_hints

from metaprior_reproduction.frame.result import Metric, Result, read_result
from metaprior_reproduction.parts.item import Verdict
from metaprior_reproduction.report.figures import Figure, read_figure
from metaprior_reproduction.report.numbers import number_text

#: The outcomes of verdicts, in the order in which they are counted.
OUTCOMES: tuple[str, ...] = get_args(get_type_hints(Verdict)["outcome"])
MEANING = "Agrees: as the paper claims; better: than it claims; worse: the claim is not met here."
#: With more metrics than this, a table has one row per metric and one column per method.
MOST_COLUMNS = 8
#: The largest number of cells of a table.
MOST_CELLS = 100_000


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

    result: Result
    folder: Path

    @property
    def id(self) -> str:
        """The item's id."""
        return self.result.id

    def figure(self, name: str, kinds: Sequence[str] = ("svg", "png")) -> Figure:
        """Return a figure, in the first of these formats that exists."""
        for kind in kinds:
            path = self.folder / f"{name}.{kind}"
            if path.is_symlink() or path.exists():
                return read_figure(path, self.folder)
        raise FileNotFoundError(
            f"{self.folder}: expected the figure {name}.png or {name}.svg beside result.json; there is neither. "
            "Run 'metaprior reproduce' again."
        )

    def counts(self) -> dict[str, int]:
        """Return how many verdicts of each kind there are."""
        return tally([self])

    def table(self) -> Table:
        """Return the table of numbers; if there are many metrics, they are its rows."""
        ours = {row.method: row.metrics for row in self.result.rows}
        methods = list(dict.fromkeys([*ours, *self.result.paper]))
        own = (name for metrics in ours.values() for name in metrics)
        metrics = list(dict.fromkeys([*own, *(name for given in self.result.paper.values() for name in given)]))
        if len(methods) * len(metrics) > MOST_CELLS:
            raise ValueError(
                f"{self.folder}: expected at most {MOST_CELLS:,} numbers in a result; {len(methods):,} methods with "
                f"{len(metrics):,} metrics are more."
            )
        if len(metrics) <= MOST_COLUMNS:
            return Table("method", metrics, [(m, [self._cell(ours, m, name) for name in metrics]) for m in methods])
        return Table("metric", methods, [(name, [self._cell(ours, m, name) for m in methods]) for name in metrics])

    def _cell(self, ours: Mapping[str, Mapping[str, Metric]], method: str, metric: str) -> Cell:
        found = ours.get(method, {}).get(metric)
        paper = self.result.paper.get(method, {}).get(metric)
        own = "" if found is None else number_text(found.mean, found.se)
        return Cell(own, "" if paper is None else f"{paper:g}")


def tally(entries: Sequence[Entry]) -> dict[str, int]:
    """Return how many verdicts of each kind there are."""
    found = [verdict.outcome for entry in entries for verdict in entry.result.verdicts]
    return {outcome: sum(one == outcome for one in found) for outcome in OUTCOMES}


def read_entries(folder: Path) -> list[Entry]:
    """Return the results in a folder: the paper's figures and tables by number, its appendix, then all others."""
    paths = sorted(folder.glob("*/result.json"))
    if not paths:
        raise FileNotFoundError(
            f"{folder}: expected results as 'metaprior reproduce ITEM --out {folder}' writes them (ITEM/result.json); "
            "there are none. Run that command first."
        )
    return sorted((Entry(read_result(path, folder), path.parent) for path in paths), key=_place)


def _place(entry: Entry) -> tuple[int, int, str]:
    title = entry.result.title
    numbered = re.match(r"(?:Fig\.|Figure|Table) (\d{1,6})", title)
    if numbered:
        return 0, int(numbered[1]), title
    return (1 if title.lower().startswith("app") else 2), 0, title
