"""One self-contained HTML page of results: figures are embedded, and nothing is fetched."""

import json
from collections.abc import Mapping, Sequence

from metaprior_reproduction.frame.progress import duration
from metaprior_reproduction.frame.result import Result
from metaprior_reproduction.parts.item import Verdict
from metaprior_reproduction.report.contents import MEANING, OUTCOMES, Cell, Entry, tally
from metaprior_reproduction.report.elements import Html, document, element, image, joined

#: If an SVG file has more bytes, the PNG is embedded instead.
LARGEST_SVG = 400_000
#: A table with more rows is folded.
LONGEST = 25
STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --back: #fff; --soft: #6a6f76; --line: #d9dce0; --card: #f5f6f8;
  --agrees: #1f6f3f; --better: #1a5fb4; --worse: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6e9; --back: #16181b; --soft: #9aa0a8; --line: #383c42;
  --card: #202327; --agrees: #6cc38b; --better: #7fb4f5; --worse: #f28b82; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
a { color: inherit; } code { font-size: .9em; }
section { border-top: 1px solid var(--line); margin-top: 3rem; padding-top: 1rem; }
.soft, caption, figcaption { color: var(--soft); font-size: .9em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
caption { text-align: left; caption-side: bottom; padding-top: .3rem; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.number { white-space: nowrap; }
.agrees, .better, .worse { font-weight: 600; }
.agrees { color: var(--agrees); } .better { color: var(--better); } .worse { color: var(--worse); }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; background: #fff; padding: .4rem; border-radius: 4px; }
details { background: var(--card); border-radius: 4px; padding: .4rem .8rem; margin: .5rem 0; }
""".strip()


def page(entries: Sequence[Entry]) -> str:
    """Return the page."""
    title = "The paper, reproduced"
    return document(title, STYLE, element("h1", title), _overview(entries), *[_section(entry) for entry in entries])


def _overview(entries: Sequence[Entry]) -> Html:
    total = sum(entry.result.seconds for entry in entries)
    counts = [joined([_coloured(name, name), f" {number}"]) for name, number in tally(entries).items()]
    words = f"{len(entries)} items, computed in {duration(total)}. Verdicts on their claims: "
    head = element("tr", *[element("th", name) for name in ("item", "", *OUTCOMES, "preset", "seeds", "time")])
    rows = [element("tr", *[element("td", cell) for cell in _overview_row(entry)]) for entry in entries]
    return joined([element("p", words, joined(counts, ", "), f". {MEANING}"), _wide(_table(head, rows))], "\n")


def _overview_row(entry: Entry) -> list[object]:
    result = entry.result
    return [
        element("a", entry.id, href=f"#{entry.id}"),
        result.title,
        *[_coloured(name, number) if number else "" for name, number in entry.counts().items()],
        result.preset,
        result.seeds,
        duration(result.seconds),
    ]


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
    outcome = _coloured(verdict.outcome, f"{verdict.outcome.capitalize()}.")
    return element("p", outcome, f" {verdict.claim}", element("br"), element("span", verdict.evidence, class_="soft"))


def _numbers(entry: Entry) -> Html:
    table, seeds = entry.table(), entry.result.seeds
    if not table.rows:
        return element("p", "This item has figures only.", class_="soft")
    caption = f"Mean and standard error over {seeds} seeds" if seeds > 1 else "One seed"
    caption += "; in brackets the paper's numbers." if entry.result.paper else "."
    head = element("tr", *[element("th", name) for name in (table.corner, *table.columns)])
    rows = [element("tr", element("th", name), *map(_cell, cells)) for name, cells in table.rows]
    body = _wide(_table(head, rows, element("caption", caption)))
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
    return _folded(f"Configuration: preset {result.preset}", _wide(element("table", *rows)))


def _table(head: Html, rows: Sequence[Html], *caption: Html) -> Html:
    return element("table", *caption, element("thead", head), element("tbody", "\n", joined(rows, "\n"), "\n"))


def _wide(content: Html) -> Html:
    return element("div", content, class_="wide")


def _folded(summary: str, content: Html) -> Html:
    return element("details", element("summary", summary), content)


def _coloured(outcome: str, text: object) -> Html:
    return element("span", text, class_=outcome)


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())
