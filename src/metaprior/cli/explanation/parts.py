"""What the page says in words: facts, scores, findings, and the rows that are farthest from the data."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from metaprior.cli.describe import described, kernel_rows
from metaprior.cli.explanation.figures import Figure, NoFigure
from metaprior.cli.explanation.page import Report, commands
from metaprior.cli.explanation.subject import MOST_COLUMNS, NUM_LISTED, Subject
from metaprior.cli.result import counted
from metaprior.cli.score_meanings import MEANINGS

if TYPE_CHECKING:
    from metaprior.diagnosis import Diagnosis


def report_of(
    subject: Subject,
    figures: "dict[str, list[Figure | NoFigure]]",
    diagnosis: "Diagnosis | None",
    paths: tuple[str, str],
    num_rows: int,
) -> Report:
    """Return what the page tells of a model and the rows of a table; `paths` are those of the model and the table."""
    model_path, table_path = paths
    data, looked = described(subject.model), len(subject.frame)
    part = "all" if looked == num_rows else f"{looked:,}, drawn at random, of the"
    return Report(
        title=f"{subject.target}: what the model says",
        introduction=f"{Path(model_path).name} predicts {subject.target!r} from "
        f"{counted(len(data['columns']), 'column')}. This page looks at {part} {counted(num_rows, 'row')} of "
        f"{Path(table_path).name}.",
        facts=_facts(data),
        scores=[(name, f"{value:.4g}", MEANINGS[name]) for name, value in subject.scores.items()],
        scores_note=_scores_note(subject, diagnosis),
        findings=[] if diagnosis is None else [(f.severity, f.name, f.sentence, f.advice) for f in _ordered(diagnosis)],
        left_out=_left_out(subject, diagnosis),
        figures=figures,
        farthest=subject.farthest(),
        farthest_note=_farthest_note(subject, len(data["columns"])),
        commands=commands(model_path, subject.target),
    )


def _facts(data: dict[str, Any]) -> dict[str, str]:
    """Return what is known of the model and its fit."""
    facts = {
        "model": f"{data['estimator']}, network {'-'.join(map(str, data['network']))}, {data['weights']:,} weights",
        "task": data["task"] + (f" into {', '.join(map(repr, data['classes'][:10]))}" if "classes" in data else ""),
        **dict(kernel_rows(data)),
        "training": f"{data['rows']:,} rows, {data['steps']:,} steps, ELBO {data['elbo']:.1f}",
    }
    if "holdout" in data:
        held = data["holdout"]
        known = {name: held["scores"].get(name) for name in ("rmse", "r2", "coverage_95", "accuracy", "nll")}
        values = ", ".join(f"{name} {value:.3g}" for name, value in known.items() if value is not None)
        facts["held out"] = f"{held['rows']:,} rows, {held['chosen']}: {values}"
    columns = [f"{name}: {what}" for name, what in list(data["columns"].items())[:20]]
    more = len(data["columns"]) - len(columns)
    facts["columns"] = "; ".join(columns) + (f"; and {more} more" if more else "")
    facts["versions"] = ", ".join(f"{name} {number}" for name, number in data["versions"].items())
    return facts


def _scores_note(subject: Subject, diagnosis: "Diagnosis | None") -> str:
    if diagnosis is None:
        return f"The table has no values of {subject.target!r} in all rows, so the predictions cannot be scored."
    return (
        f"{diagnosis.title}. Rows that were fitted have better scores than new ones will have; "
        "'metaprior fit --holdout 0.2' scores rows that were not fitted."
    )


def _ordered(diagnosis: "Diagnosis") -> list[Any]:
    return sorted(diagnosis, key=lambda found: ("warning", "note", "ok").index(found.severity))


def _left_out(subject: Subject, diagnosis: "Diagnosis | None") -> list[tuple[str, str]]:
    if diagnosis is None:
        return [("diagnosis", f"it needs the values of {subject.target!r}, which this table does not have.")]
    return [(own.name, own.reason) for own in diagnosis.left_out]


def _farthest_note(subject: Subject, num_columns: int) -> str:
    what = "mutual information" if subject.is_classified else "epistemic standard deviation"
    cut = f" The first {MOST_COLUMNS} of {num_columns} columns are shown." if num_columns > MOST_COLUMNS else ""
    return (
        f"The {min(NUM_LISTED, len(subject.frame))} rows where the model knows least: those with the largest {what}, "
        f"which is the part of its doubt that more data there would remove.{cut}"
    )
