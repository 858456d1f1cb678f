"""The page of `metaprior explain`: one file that fetches nothing and runs nothing, for screens, phones and paper."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from metaprior.cli.explanation.figures import Figure, NoFigure
from metaprior.cli.explanation.subject import Listed
from metaprior.cli.html_elements import STYLE, Html, document, element, joined, picture, table_element
from metaprior.cli.streams import printable

#: What belongs to this page alone.
OWN_STYLE = """
h1, h2, p, dd, code { overflow-wrap: anywhere; } th, td { overflow-wrap: break-word; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; } dd { margin: 0; }
dt { color: var(--soft); }
pre { background: var(--card); border-radius: 4px; padding: .7rem .9rem; overflow-x: auto; font-size: .85em; }
.side { display: flex; flex-wrap: wrap; gap: 0 2rem; } .side figure { flex: 1 1 19rem; max-width: 40rem; }
.found { margin: .7rem 0; padding-left: .8rem; border-left: 3px solid var(--line); }
.warning { border-color: var(--bad); } .note { border-color: var(--other); } .ok { border-color: var(--good); }
.found b { font-weight: 600; }
th { font-weight: 600; } td.number { text-align: right; }
@media (max-width: 40rem) { body { margin: 1rem auto; } dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } }
@media print { body { max-width: none; margin: 0; font-size: 11pt; } section { margin-top: 1.2rem; }
  figure, .found, tr, pre { break-inside: avoid; } h2 { break-after: avoid; } pre { white-space: pre-wrap; } }
""".strip()
#: The title of every section of figures, and what it answers.
SECTIONS = {
    "fit": ("The fit", "What the model says, beside the rows of the table."),
    "calibration": ("Calibration", "Whether the model is as sure of itself as it may be."),
    "components": ("Components", "What the parts of the model contribute."),
    "relevance": ("Relevance", "Which columns the input kernel attends to."),
    "training": ("Training", "Whether the fit has converged."),
}
WORDS = {"ok": "In order", "note": "Note", "warning": "To change"}


class Report(NamedTuple):
    """What the page tells. All texts are plain."""

    title: str
    introduction: str
    facts: Mapping[str, str]
    scores: Sequence[tuple[str, str, str]]
    scores_note: str
    findings: Sequence[tuple[str, str, str, str]]
    left_out: Sequence[tuple[str, str]]
    figures: Mapping[str, Sequence[Figure | NoFigure]]
    farthest: Listed
    farthest_note: str
    commands: str


def page(report: Report) -> Html:
    """Return the page."""
    return document(
        _text(report.title),
        f"{STYLE}\n{OWN_STYLE}",
        element("h1", _text(report.title)),
        element("p", _text(report.introduction)),
        _facts(report.facts),
        _section("Scores", _scores(report), _soft(report.scores_note)),
        _section("Findings", *_findings(report)),
        *[_figures(name, figures) for name, figures in report.figures.items()],
        _section("Rows farthest from the data", _soft(report.farthest_note), _rows(report.farthest)),
        _section("How to use the model", element("pre", element("code", _text(report.commands, lines=True)))),
    )


def commands(path: str, target: str, ids: Sequence[str] = ()) -> str:
    """Return the commands that use a model's file, and the same in Python."""
    model = shlex.quote(path)
    return "\n".join(
        [
            f"# predictions of {target!r} for new rows, with their intervals",
            f"metaprior predict {model} new.csv --out predictions.csv",
            "# scores on rows whose values are known",
            f"metaprior evaluate {model} test.csv",
            "# what is in the file",
            f"metaprior info {model}",
            "",
            "# the same in Python",
            "import metaprior, pandas",
            f"model = metaprior.load({path!r})",
            'model.predict(pandas.read_csv("new.csv"))',
        ]
    )


def _section(title: str, *content: Html) -> Html:
    return element("section", element("h2", title), joined(content, "\n"))


def _facts(facts: Mapping[str, str]) -> Html:
    rows = [joined([element("dt", _text(name)), element("dd", _text(value))]) for name, value in facts.items()]
    return element("dl", joined(rows, "\n"))


def _scores(report: Report) -> Html:
    if not report.scores:
        return joined([])
    head = element("tr", *[element("th", name) for name in ("score", "value", "meaning")])
    rows = [
        element("tr", element("th", _text(name)), element("td", value, class_="number"), element("td", _text(meaning)))
        for name, value, meaning in report.scores
    ]
    return table_element(head, rows)


def _findings(report: Report) -> Iterable[Html]:
    for severity, name, sentence, advice in report.findings:
        said = element("p", element("b", f"{WORDS[severity]}: {_text(name)}. "), _text(sentence))
        todo = [element("p", element("b", "What to do: "), _text(advice))] if advice else []
        yield element("div", said, *todo, class_=f"found {severity}")
    if report.left_out:
        rows = [element("p", element("b", _text(name)), ": ", _text(reason)) for name, reason in report.left_out]
        yield element("details", element("summary", "What could not be looked at"), *rows)


def _figures(name: str, figures: Sequence[Figure | NoFigure]) -> Html:
    title, question = SECTIONS[name]
    return _section(title, _soft(question), element("div", *[_figure(found) for found in figures], class_="side"))


def _figure(found: Figure | NoFigure) -> Html:
    if isinstance(found, NoFigure):
        return element("p", _text(found.reason))
    shown = picture(found.media_type, found.light, found.dark, _text(found.alt))
    return element("figure", shown, element("figcaption", _text(found.caption)))


def _rows(listed: Listed) -> Html:
    head = element("tr", *[element("th", _text(name)) for name in listed.head])
    return table_element(head, [element("tr", *[_cell(value) for value in row]) for row in listed.rows])


def _cell(value: Any) -> Html:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float):
        return element("td", f"{value:.4g}", class_="number")
    if isinstance(value, int) and not isinstance(value, bool):
        return element("td", value, class_="number")
    return element("td", _text(str(value)))


def _soft(text: str) -> Html:
    return element("p", _text(text), class_="soft") if text else joined([])


def _text(text: str, *, lines: bool = False) -> str:
    """Return text without characters that change how others are shown; ends of lines stay only where they may."""
    shown = printable(text)
    return shown if lines else shown.replace("\n", " ")
