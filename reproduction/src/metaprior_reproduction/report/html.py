"""One self-contained HTML page of results: figures are embedded, and nothing is fetched."""

import base64
import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from metaprior_reproduction.frame.progress import duration
from metaprior_reproduction.report.contents import MEANING, OUTCOMES, Entry, Table, tally

#: If an SVG file has more bytes, the PNG is embedded instead.
LARGEST_SVG = 400_000
#: A table with more rows is folded.
LONGEST = 25
KINDS = {".svg": "image/svg+xml", ".png": "image/png"}
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
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title><style>\n{STYLE}\n</style></head><body>",
            f"<h1>{title}</h1>",
            _overview(entries),
            *[_section(entry) for entry in entries],
            "</body></html>\n",
        ]
    )


def _overview(entries: Sequence[Entry]) -> str:
    total = sum(entry.result["seconds"] for entry in entries)
    counts = ", ".join(f'<span class="{name}">{name}</span> {number}' for name, number in tally(entries).items())
    head = "".join(f"<th>{escape(name)}</th>" for name in ("item", "", *OUTCOMES, "preset", "seeds", "time"))
    rows = "\n".join(f"<tr>{_overview_row(entry)}</tr>" for entry in entries)
    return (
        f"<p>{len(entries)} items, computed in {duration(total)}. Verdicts on their claims: {counts}. {MEANING}</p>\n"
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'
    )


def _overview_row(entry: Entry) -> str:
    result = entry.result
    cells = [
        f'<a href="#{escape(entry.id)}">{escape(entry.id)}</a>',
        escape(result["title"]),
        *[f'<span class="{name}">{number}</span>' if number else "" for name, number in entry.counts().items()],
        escape(result["preset"]),
        str(result["config"]["seeds"]),
        duration(result["seconds"]),
    ]
    return "".join(f"<td>{cell}</td>" for cell in cells)


def _section(entry: Entry) -> str:
    result = entry.result
    return "\n".join(
        [
            f'<section id="{escape(entry.id)}"><h2>{escape(result["title"])}</h2>',
            f"<p>{escape(result['claim'])}</p>",
            "<h3>Verdicts</h3>",
            *[_verdict(verdict) for verdict in result["verdicts"]],
            "<h3>Numbers</h3>",
            _numbers(entry),
            *[_figure(entry, name) for name in result["figures"]],
            f"<p>{escape(result['notes'])}</p>" if result.get("notes") else "",
            _configuration(entry),
            "</section>",
        ]
    )


def _verdict(verdict: dict[str, str]) -> str:
    outcome = verdict["outcome"]
    return (
        f'<p><span class="{outcome}">{outcome.capitalize()}.</span> {escape(verdict["claim"])}<br>'
        f'<span class="soft">{escape(verdict["evidence"])}</span></p>'
    )


def _numbers(entry: Entry) -> str:
    table, seeds = entry.table(), entry.result["config"]["seeds"]
    if not table.rows:
        return '<p class="soft">This item has figures only.</p>'
    caption = f"Mean and standard error over {seeds} seeds" if seeds > 1 else "One seed"
    caption += "; in brackets the paper's numbers." if entry.result["paper"] else "."
    body = f'<div class="wide">{_table(table, caption)}</div>'
    is_long = len(table.rows) > LONGEST
    return f"<details><summary>{len(table.rows)} metrics</summary>{body}</details>" if is_long else body


def _table(table: Table, caption: str) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in (table.corner, *table.columns))
    rows = [
        f"<tr><th>{escape(name)}</th>"
        + "".join(f'<td class="number">{escape(cell.ours)}{_bracketed(cell.paper)}</td>' for cell in cells)
        + "</tr>"
        for name, cells in table.rows
    ]
    return (
        f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>\n"
        + "\n".join(rows)
        + "\n</tbody></table>"
    )


def _bracketed(paper: str) -> str:
    return f' <span class="soft">({escape(paper)})</span>' if paper else ""


def _figure(entry: Entry, name: str) -> str:
    path = _embedded(entry, name)
    content = base64.b64encode(path.read_bytes()).decode()
    return (
        f'<figure><img alt="{escape(entry.result["title"])}: {escape(name)}" '
        f'src="data:{KINDS[path.suffix]};base64,{content}"><figcaption>{escape(name)}</figcaption></figure>'
    )


def _embedded(entry: Entry, name: str) -> Path:
    """Return the SVG of a figure, or the PNG if the SVG is large."""
    path = entry.figure(name)
    return entry.figure(name, ("png", "svg")) if path.stat().st_size > LARGEST_SVG else path


def _configuration(entry: Entry) -> str:
    result = entry.result
    config = "".join(
        f"<tr><th>{escape(name)}</th><td><code>{escape(json.dumps(value, ensure_ascii=False))}</code></td></tr>"
        for name, value in result["config"].items()
    )
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return (
        f"<details><summary>Configuration: preset {escape(result['preset'])}</summary>"
        f'<div class="wide"><table>{config}</table></div></details>\n'
        f'<p class="soft">Computed in {duration(result["seconds"])}. {escape(versions)}.</p>'
    )
