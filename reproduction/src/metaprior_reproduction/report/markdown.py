"""A Markdown page of results, with links to the files of the figures."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from metaprior_reproduction.frame.progress import duration
from metaprior_reproduction.report.contents import MEANING, OUTCOMES, Cell, Entry, tally

#: A file in the folder of the results; if it exists, its text is put at the top of the page.
NOTE = "note.md"
#: A table with more rows is folded.
LONGEST = 25


def page(entries: Sequence[Entry], place: Path) -> str:
    """Return the page, with links that are relative to the folder `place`."""
    results = entries[0].folder.parent
    folder, note = os.path.relpath(results, place), results / NOTE
    total = sum(entry.result["seconds"] for entry in entries)
    counts = ", ".join(f"{name} {number}" for name, number in tally(entries).items())
    parts = [
        "# The paper, reproduced",
        *([note.read_text(encoding="utf-8").strip()] if note.exists() else []),
        f"Made by `metaprior report` from the results in [{folder}]({_link(folder)}); not written by hand. "
        f"{len(entries)} items, computed in {duration(total)}. Verdicts on their claims: {counts}. {MEANING} "
        "[experiments.md](experiments.md) says how to run an item again.",
        _overview(entries),
        *[_section(entry, place) for entry in entries],
    ]
    return "\n\n".join(parts) + "\n"


def _overview(entries: Sequence[Entry]) -> str:
    rows = [
        [
            f"[{entry.id}](#{entry.id})",
            _text(entry.result["title"]),
            *[str(number or "") for number in entry.counts().values()],
            entry.result["preset"],
            str(entry.result["config"]["seeds"]),
            duration(entry.result["seconds"]),
        ]
        for entry in entries
    ]
    return _table(["item", "", *OUTCOMES, "preset", "seeds", "time"], rows)


def _section(entry: Entry, place: Path) -> str:
    result = entry.result
    figures = [_figure(entry, name, place) for name in result["figures"]]
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    config = ", ".join(f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in result["config"].items())
    parts = [
        f"## {entry.id}",
        f"**{_text(result['title'])}.** {_text(result['claim'])}",
        "\n".join(_verdict(verdict) for verdict in result["verdicts"]),
        _numbers(entry),
        *figures,
        _text(result.get("notes", "")),
        f"Preset {result['preset']}: {_text(config)}. Computed in {duration(result['seconds'])}. {_text(versions)}.",
    ]
    return "\n\n".join(part for part in parts if part)


def _verdict(verdict: dict[str, str]) -> str:
    evidence = _text(verdict["evidence"]).rstrip(".")
    return f"- **{verdict['outcome'].capitalize()}.** {_text(verdict['claim'])} Found: {evidence}."


def _numbers(entry: Entry) -> str:
    table, seeds = entry.table(), entry.result["config"]["seeds"]
    if not table.rows:
        return ""
    head = [table.corner, *(_text(name) for name in table.columns)]
    body = _table(head, [[_text(name), *map(_cell, cells)] for name, cells in table.rows])
    words = f"Mean and standard error over {seeds} seeds" if seeds > 1 else "One seed"
    words += "; in brackets the paper's numbers." if entry.result["paper"] else "."
    if len(table.rows) > LONGEST:
        return f"<details><summary>{len(table.rows)} metrics. {words}</summary>\n\n{body}\n\n</details>"
    return f"{body}\n\n{words}"


def _cell(cell: Cell) -> str:
    return f"{cell.ours} ({cell.paper})".strip() if cell.paper else cell.ours


def _figure(entry: Entry, name: str, place: Path) -> str:
    path = os.path.relpath(entry.figure(name, ("png", "svg")), place)
    return f"![{_text(entry.result['title'])}: {name}]({_link(path)})"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(text: str) -> str:
    """Return text on one line, with the special characters of Markdown escaped."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", " ".join(text.split()))


def _link(path: str) -> str:
    return path.replace(os.sep, "/").replace(" ", "%20")
