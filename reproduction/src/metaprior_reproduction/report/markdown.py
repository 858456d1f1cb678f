"""A Markdown page of results, with links to the files of the figures."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from metaprior_reproduction.frame.progress import duration
from metaprior_reproduction.parts.item import Verdict
from metaprior_reproduction.report import marks
from metaprior_reproduction.report.contents import (
    HEADINGS,
    MEANING,
    OWNERS,
    Cell,
    Entry,
    cause_of,
    counts_text,
    heading_of,
    tally,
)
from metaprior_reproduction.report.marks import Markdown, inline, paragraph

#: A table with more rows is folded.
LONGEST = 25


def page(entries: Sequence[Entry], place: Path, note: str = "") -> str:
    """Return the page, with links that are relative to the folder `place` and a note at its top, which is Markdown."""
    folder = os.path.relpath(entries[0].folder.parent, place)
    total = sum(entry.result.seconds for entry in entries)
    told = f"{len(entries)} items, computed in {duration(total)}. Verdicts on their claims: "
    made = paragraph(
        *("Made by ", marks.code("metaprior report"), " from the results in ", marks.link(folder, folder)),
        f"; not written by hand. {told}{counts_text(tally(entries))}. {MEANING} ",
        *(marks.link("experiments.md", "experiments.md"), " says how to run an item again."),
    )
    parts = [marks.heading(1, "The paper, reproduced"), marks.as_written(note.strip()), made, _overview(entries)]
    return marks.joined([*parts, *[_section(entry, place) for entry in entries]]) + "\n"


def _overview(entries: Sequence[Entry]) -> Markdown:
    rows = [
        [
            marks.anchor(entry.id),
            entry.result.title,
            *[_counts(own) for own in entry.counts().values()],
            entry.result.preset,
            entry.result.seeds,
            duration(entry.result.seconds),
        ]
        for entry in entries
    ]
    return marks.table(["item", "", *[HEADINGS[whose] for whose in OWNERS], "preset", "seeds", "time"], rows)


def _counts(own: Mapping[str, int]) -> str:
    return ", ".join(f"{outcome} {number}" for outcome, number in own.items() if number)


def _section(entry: Entry, place: Path) -> Markdown:
    result = entry.result
    versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
    config = ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in result.config.items())
    return marks.joined(
        [
            marks.heading(2, entry.id),
            paragraph(marks.bold(f"{result.title}."), " ", result.claim),
            marks.bullets(_verdict(verdict) for verdict in result.verdicts),
            _numbers(entry),
            *[_figure(entry, name, place) for name in result.figures],
            paragraph(result.notes),
            paragraph(f"Preset {result.preset}: {config}. Computed in {duration(result.seconds)}. {versions}."),
        ]
    )


def _verdict(verdict: Verdict) -> Markdown:
    evidence, cause = (_unended(text) for text in (verdict.evidence, cause_of(verdict)))
    ending = f" Cause: {cause}." if cause else ""
    return inline(marks.bold(heading_of(verdict)), f" {verdict.claim} Found: {evidence}.{ending}")


def _unended(text: str) -> str:
    """Return a text without the full stop at its end."""
    return text.strip().rstrip(".")


def _numbers(entry: Entry) -> Markdown:
    table, seeds = entry.table(), entry.result.seeds
    if not table.rows:
        return inline()
    body = marks.table([table.corner, *table.columns], [[name, *map(_cell, cells)] for name, cells in table.rows])
    words = f"Mean and standard error over {seeds} seeds" if seeds > 1 else "One seed"
    words += "; in brackets published numbers." if entry.result.paper else "."
    if len(table.rows) > LONGEST:
        return marks.folded(f"{len(table.rows)} metrics. {words}", body)
    return marks.joined([body, paragraph(words)])


def _cell(cell: Cell) -> str:
    return f"{cell.ours} ({cell.paper})".strip() if cell.paper else cell.ours


def _figure(entry: Entry, name: str, place: Path) -> Markdown:
    path = os.path.relpath(entry.figure(name, ("png", "svg")).path, place)
    return marks.image(f"{entry.result.title}: {name}", path)
