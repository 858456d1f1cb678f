"""A short Markdown page of the results, by question: a few figures, and a table with its command for every item named.

The page is made from the stored results like the long one. An item without results of the paper's sizes says so, and so
does one whose results were computed with other settings than it has now.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from metaprior_reproduction.frame.identity import plain
from metaprior_reproduction.frame.result import Metric
from metaprior_reproduction.items import item_named
from metaprior_reproduction.report import marks
from metaprior_reproduction.report.contents import Entry
from metaprior_reproduction.report.marks import Markdown, paragraph
from metaprior_reproduction.report.numbers import number_text

#: The preset whose results the page shows, and where its commands put them, from the root of the repository.
PRESET, RESULTS = "paper", "reproduction/results"
#: How the titles of items begin that are not in the paper.
OWN = "Of our own: "


class Shown(NamedTuple):
    """A table of the page.

    Parameters
    ----------
    item : str
        The item whose results it shows.
    words : str
        What the table says, in a sentence or two.
    metrics : mapping of str to str
        The metrics that are shown, with their headings.
    by_set : bool
        Whether a method is the name of a data set and of a model: then models are rows and data sets are columns.
    figure : str
        A figure of the item that stands below the table.
    """

    item: str
    words: str
    metrics: Mapping[str, str]
    by_set: bool = False
    figure: str = ""


class Question(NamedTuple):
    """A section of the page: what a reader asks, and the tables that answer it."""

    title: str
    tables: Sequence[Shown]


ERRORS = {"rmse": "RMSE", "nll": "NLL"}
QUESTIONS = (
    Question(
        "Is it good on tables?",
        (
            Shown(
                "uci-regression",
                "Nine tables of the UCI repository, on their standard splits. Smaller is better.",
                ERRORS,
                by_set=True,
                figure="uci-regression",
            ),
            Shown("default-tables", "Ten other tables, on which nothing was chosen.", ERRORS, by_set=True),
            Shown(
                "gap-splits",
                "The nine tables with the middle third of one column held out. The joint NLL is that of ten rows "
                "together, per row.",
                {"nll": "NLL", "joint_nll": "joint NLL"},
                by_set=True,
            ),
        ),
    ),
    Question(
        "Does it forecast series?",
        (
            Shown("versus-gp", "The last part of each series is forecast from what comes before.", ERRORS, by_set=True),
            Shown(
                "series-forecasts",
                "Thirteen series. ETS, ARIMA and the last season again are told how long a season is.",
                ERRORS,
                by_set=True,
            ),
        ),
    ),
    Question(
        "Does it know what it does not know, far away from the data?",
        (
            Shown(
                "sinusoid",
                "The sinusoid of the paper's Table 1. With noise of 0.1, the best possible NLL is about -0.88.",
                {
                    "in_rmse": "RMSE inside",
                    "in_nll": "NLL inside",
                    "out_rmse": "RMSE outside",
                    "out_nll": "NLL outside",
                },
                figure="sinusoid",
            ),
            Shown(
                "four-class",
                "Four classes in the plane. The entropy is that on a ring of radius 20, as a part of log 4: at 1, "
                "nothing is claimed to be known there.",
                {"ring_entropy": "entropy far away", "accuracy": "accuracy", "nll": "NLL"},
            ),
            Shown(
                "mnist-ood",
                "Networks of 784-100-10 units trained on MNIST. The AUROC says how well the entropy separates images "
                "of another set from test digits.",
                {
                    "accuracy": "accuracy",
                    "nll": "NLL",
                    "ece": "calibration error",
                    "auroc_fashion": "AUROC Fashion-MNIST",
                    "auroc_notmnist": "AUROC notMNIST",
                    "auroc_kmnist": "AUROC KMNIST",
                },
                figure="entropies",
            ),
        ),
    ),
    Question(
        "Does it decide well?",
        (
            Shown(
                "active-uci",
                "The RMSE after 20 queries, which start from 20 rows. Active: the row of highest entropy; informed: "
                "the row whose answer tells most about the rest of the pool.",
                {"rmse_20": "RMSE"},
                by_set=True,
            ),
            Shown(
                "bandit",
                "The mushroom bandit: the regret after 2000 rounds, and its share of that of random arms.",
                {"regret": "regret", "share": "share in percent"},
            ),
            Shown(
                "optimisation",
                "Bayesian optimisation: the logarithm (to base 10) of the simple regret at the end. Smaller is better.",
                {"log10_regret": "log10 of the regret"},
                by_set=True,
            ),
        ),
    ),
)


def page(entries: Sequence[Entry], folder: Path, place: Path, note: str = "") -> str:
    """Return the page, with links relative to the folder `place`; the note at its top is Markdown."""
    known = {entry.id: entry for entry in entries}
    results = os.path.relpath(folder, place)
    made = paragraph(
        *("Made by ", marks.code("metaprior report --summary"), " from the results in ", marks.link(results, results)),
        "; not written by hand. Numbers are means over seeds with their standard errors. ",
        *(
            marks.link("reproduction.md", "reproduction.md"),
            " has all items with their claims, and what became of them.",
        ),
    )
    sections = [_section(question, known, place) for question in QUESTIONS]
    return marks.joined([marks.heading(1, "Results"), marks.as_written(note.strip()), made, *sections]) + "\n"


def _section(question: Question, known: Mapping[str, Entry], place: Path) -> Markdown:
    tables = [_shown(shown, known.get(shown.item), place) for shown in question.tables]
    return marks.joined([marks.heading(2, question.title), *tables])


def _shown(shown: Shown, entry: Entry | None, place: Path) -> Markdown:
    name = item_named(shown.item).title.removeprefix(OWN)
    title = paragraph(marks.bold(f"{name[0].upper()}{name[1:]}."), " ", shown.words)
    command = paragraph("Command: ", marks.code(f"metaprior reproduce {shown.item} --preset {PRESET} --out {RESULTS}"))
    if entry is None or entry.result.preset != PRESET:
        missing = paragraph("No results of the paper's sizes are stored yet. The command computes them.")
        return marks.joined([title, missing, command])
    table = _by_set(shown, entry) if shown.by_set else _by_metric(shown, entry)
    figure = _figure(shown, entry, place)
    return marks.joined([title, table, paragraph(*_remarks(shown, entry)), command, figure])


def _remarks(shown: Shown, entry: Entry) -> list[str]:
    """Return how many seeds there were, and what a reader must know about the age of the numbers."""
    seeds = entry.result.seeds
    words = [f"{seeds} seeds." if seeds > 1 else "One seed."]
    if not _is_current(shown.item, entry):
        words.append(" These results were computed with other settings than the item has now.")
    return words


def _is_current(name: str, entry: Entry) -> bool:
    """Return whether the stored configuration is that of the item as it is now, whatever the number of seeds."""
    now, stored = (dict(config) for config in (plain(item_named(name).presets[PRESET]), entry.result.config))
    now.pop("seeds"), stored.pop("seeds")
    return now == stored


# --- tables -----------------------------------------------------------------------------


def _by_metric(shown: Shown, entry: Entry) -> Markdown:
    """Return a table of methods and metrics, with standard errors."""
    rows = [[row.method, *[_text(row.metrics.get(name)) for name in shown.metrics]] for row in entry.result.rows]
    return marks.table(["method", *shown.metrics.values()], rows)


def _by_set(shown: Shown, entry: Entry) -> Markdown:
    """Return a table of models and data sets; if there are several metrics, a cell has their means alone."""
    found = {tuple(row.method.split(" ", 1)): row.metrics for row in entry.result.rows}
    sets, models = (list(dict.fromkeys(key[place] for key in found if len(key) == 2)) for place in (0, 1))
    one = len(shown.metrics) == 1

    def cell(name: str, model: str) -> str:
        of = found.get((name, model), {})
        texts = [_text(of.get(metric)) if one else _text(of.get(metric)).split(" ± ")[0] for metric in shown.metrics]
        return " / ".join(text or "-" for text in texts) if any(texts) else ""

    head = [" / ".join(shown.metrics.values()), *sets]
    return marks.table(head, [[model, *[cell(name, model) for name in sets]] for model in models])


def _text(metric: Metric | None) -> str:
    return "" if metric is None else number_text(metric.mean, metric.se)


def _figure(shown: Shown, entry: Entry, place: Path) -> Markdown:
    if not shown.figure or shown.figure not in entry.result.figures:
        return Markdown("")
    path = os.path.relpath(entry.figure(shown.figure, ("png", "svg")).path, place)
    return marks.image(f"{entry.result.title}: {shown.figure}", path)
