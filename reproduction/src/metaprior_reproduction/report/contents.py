"""The content of a page, read from `result.json` and the figures beside it, and from nothing else."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, get_args, get_type_hints

from metaprior_reproduction.frame.result import Metric, Result, read_result
from metaprior_reproduction.parts.item import Verdict, Whose
from metaprior_reproduction.report.figures import Figure, read_figure
from metaprior_reproduction.report.numbers import number_text

#: The outcomes of verdicts, in the order in which they are counted.
OUTCOMES: tuple[str, ...] = get_args(get_type_hints(Verdict)["outcome"])
#: Whose methods verdicts are about, in the order in which they are counted.
OWNERS: tuple[Whose, ...] = get_args(Whose)
#: The headings of the counts.
HEADINGS: Mapping[Whose, str] = {"ours": "ours", "as published": "as published", "baseline": "baselines"}
MEANING = (
    "Agrees: as the paper claims; better: than it claims; worse: the claim is not met here. Verdicts are counted "
    "apart on methods of this library (ours), on the paper's own inference, in which every weight is drawn (as "
    "published), and on the methods that these are compared with (baselines)."
)
UNKNOWN_CAUSE = "not known yet"
#: With more metrics than this, a table has one row per metric and one column per method.
MOST_COLUMNS = 8
#: The largest number of cells of a table.
MOST_CELLS = 100_000


#: How many verdicts of each outcome there are, by whose method they are about.
Counts = dict[Whose, dict[str, int]]


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

    def counts(self) -> Counts:
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


def tally(entries: Sequence[Entry]) -> Counts:
    """Return how many verdicts of each kind there are."""
    found: list[tuple[str, str]]
    found = [(verdict.whose, verdict.outcome) for entry in entries for verdict in entry.result.verdicts]
    return {whose: {outcome: found.count((whose, outcome)) for outcome in OUTCOMES} for whose in OWNERS}


def counts_text(counts: Counts) -> str:
    """Return counts as text: "ours: agrees 3, better 0, worse 1; baselines: ..."."""
    told = {whose: ", ".join(f"{outcome} {number}" for outcome, number in own.items()) for whose, own in counts.items()}
    return "; ".join(f"{HEADINGS[whose]}: {words}" for whose, words in told.items() if any(counts[whose].values()))


def cause_of(verdict: Verdict) -> str:
    """Return why a claim of ours is not met, for readers; empty for all other verdicts without a cause."""
    is_open = verdict.outcome == "worse" and verdict.whose == "ours"
    return verdict.cause or (UNKNOWN_CAUSE if is_open else "")


def heading_of(verdict: Verdict) -> str:
    """Return the first words of a verdict: "Agrees.", or "Worse (baseline)." where the method is not ours."""
    owner = "" if verdict.whose == "ours" else f" ({verdict.whose})"
    return f"{verdict.outcome.capitalize()}{owner}."


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
