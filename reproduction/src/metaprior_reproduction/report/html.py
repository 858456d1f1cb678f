"""One self-contained HTML page of results: figures are embedded, and nothing is fetched."""

import json
from collections.abc import Mapping, Sequence

from metaprior.cli.html_elements import STYLE, Html, document, element, image, joined, table_element, wide
from metaprior_reproduction.frame.progress import duration
from metaprior_reproduction.frame.result import Result
from metaprior_reproduction.parts.item import Verdict
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

#: If an SVG file has more bytes, the PNG is embedded instead.
LARGEST_SVG = 400_000
#: A table with more rows is folded.
LONGEST = 25
OWN_STYLE = """
.agrees, .better, .worse { font-weight: 600; }
.agrees { color: var(--good); } .better { color: var(--other); } .worse { color: var(--bad); }
img { background: #fff; padding: .4rem; border-radius: 4px; }
""".strip()


def page(entries: Sequence[Entry]) -> str:
    """Return the page."""
    title = "The paper, reproduced"
    return document(
        title,
        f"{STYLE}\n{OWN_STYLE}",
        element("h1", title),
        _overview(entries),
        *[_section(entry) for entry in entries],
    )


def _overview(entries: Sequence[Entry]) -> Html:
    total = sum(entry.result.seconds for entry in entries)
    counts = counts_text(tally(entries))
    words = f"{len(entries)} items, computed in {duration(total)}. Verdicts on their claims: {counts}. {MEANING}"
    owners = [HEADINGS[whose] for whose in OWNERS]
    head = element("tr", *[element("th", name) for name in ("item", "", *owners, "preset", "seeds", "time")])
    rows = [element("tr", *[element("td", cell) for cell in _overview_row(entry)]) for entry in entries]
    return joined([element("p", words), table_element(head, rows)], "\n")


def _overview_row(entry: Entry) -> list[object]:
    result = entry.result
    return [
        element("a", entry.id, href=f"#{entry.id}"),
        result.title,
        *[_counts(own) for own in entry.counts().values()],
        result.preset,
        result.seeds,
        duration(result.seconds),
    ]


def _counts(own: Mapping[str, int]) -> Html:
    return joined([_coloured(outcome, f"{outcome} {number}") for outcome, number in own.items() if number], ", ")


def _section(entry: Entry) -> Html:
    result = entry.result
    parts = [
        element("h2", result.title),
        element("p", result.claim),
        element("h3", "Verdicts"),
        *[_verdict(verdict) for verdict in result.verdicts],
        element("h3", "Numbers"),
        _numbers(entry),
        *[_figure(entry, name) for name in result.figures],
        *([element("p", result.notes)] if result.notes else []),
        _configuration(result),
        element("p", f"Computed in {duration(result.seconds)}. {_listed(result.versions)}.", class_="soft"),
    ]
    return element("section", joined(parts, "\n"), id=entry.id)


def _verdict(verdict: Verdict) -> Html:
    outcome, cause = _coloured(verdict.outcome, heading_of(verdict)), cause_of(verdict)
    lines = [verdict.evidence, *([f"Cause: {cause}"] if cause else [])]
    below = [part for line in lines for part in (element("br"), element("span", line, class_="soft"))]
    return element("p", outcome, f" {verdict.claim}", *below)


def _numbers(entry: Entry) -> Html:
    table, seeds = entry.table(), entry.result.seeds
    if not table.rows:
        return element("p", "This item has figures only.", class_="soft")
    caption = f"Mean and standard error over {seeds} seeds" if seeds > 1 else "One seed"
    caption += "; in brackets published numbers." if entry.result.paper else "."
    head = element("tr", *[element("th", name) for name in (table.corner, *table.columns)])
    rows = [element("tr", element("th", name), *map(_cell, cells)) for name, cells in table.rows]
    body = table_element(head, rows, element("caption", caption))
    is_long = len(table.rows) > LONGEST
    return _folded(f"{len(table.rows)} metrics", body) if is_long else body


def _cell(cell: Cell) -> Html:
    paper = joined([" ", element("span", f"({cell.paper})", class_="soft")]) if cell.paper else ""
    return element("td", cell.ours, paper, class_="number")


def _figure(entry: Entry, name: str) -> Html:
    figure = entry.figure(name)
    if len(figure.content) > LARGEST_SVG:
        figure = entry.figure(name, ("png", "svg"))
    shown = image(figure.media_type, figure.content, f"{entry.result.title}: {name}")
    return element("figure", shown, element("figcaption", name))


def _configuration(result: Result) -> Html:
    rows = [
        element("tr", element("th", name), element("td", element("code", json.dumps(value, ensure_ascii=False))))
        for name, value in result.config.items()
    ]
    return _folded(f"Configuration: preset {result.preset}", wide(element("table", *rows)))


def _folded(summary: str, content: Html) -> Html:
    return element("details", element("summary", summary), content)


def _coloured(outcome: str, text: object) -> Html:
    return element("span", text, class_=outcome)


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
