"""`metaprior explain`: one page about a model: fit, calibration, components, relevance, findings, doubtful rows."""

import argparse
from typing import TYPE_CHECKING, Any

from metaprior.cli.options import (
    add_model,
    add_output,
    add_seed,
    add_table,
    add_unseen,
    check_inputs,
    check_output,
    loaded,
    table_of,
)
from metaprior.cli.result import Result, counted

if TYPE_CHECKING:
    from metaprior.cli.explanation.subject import Subject
    from metaprior.diagnosis import Diagnosis

SUMMARY = "write one page about a model: fit, calibration, components, findings, and how to use it"
EXAMPLES = """\
  metaprior explain model.metaprior test.csv --out report.html
  metaprior explain model.metaprior train.csv --out report.html --force
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_model(parser)
    add_table(
        parser,
        "table",
        "the rows that the page shows, best those that were not fitted; with the target, if it is known",
    )
    add_output(parser, "where the page is written: one HTML file that fetches nothing", required=True)
    add_unseen(parser)
    add_seed(parser, "the seed that chooses rows and draws")


def run(args: argparse.Namespace) -> Result:
    """Explain, and write the page."""
    check_output(args)
    check_inputs(args)
    model = loaded(args.model)
    frame = table_of(args, model, [])

    from pathlib import Path

    from metaprior.cli.explanation.page import page
    from metaprior.cli.explanation.parts import report_of
    from metaprior.cli.explanation.subject import Subject
    from metaprior.io.atomic import write_atomically

    subject = Subject.of(model, frame, allow_unseen=args.allow_unseen, seed=args.random_state)
    _ = subject.scores  # an error in the target is told before the work
    figures, diagnosis = _looked_at(subject, args)
    report = report_of(subject, figures, diagnosis, (args.model, args.table), len(frame))
    content = page(report).encode("utf-8", "backslashreplace")
    write_atomically(Path(args.out), content, overwrite=args.force)
    data = {
        "report": args.out,
        "rows": len(subject.frame),
        "scores": subject.scores,
        "findings": [dict(zip(("severity", "name", "sentence", "advice"), f, strict=True)) for f in report.findings],
        "farthest": {"columns": report.farthest.head, "rows": report.farthest.rows},
    }
    return Result(data, _text(data, len(content)))


def _text(data: dict[str, Any], size: int) -> str:
    changes = [found for found in data["findings"] if found["severity"] == "warning"]
    lines = [f"{data['report']}: a page about {counted(data['rows'], 'row')}, {size / 1e6:.1f} MB"]
    lines += [f"  to change: {found['sentence']} {found['advice']}" for found in changes]
    return "\n".join(lines)


def _looked_at(subject: "Subject", args: argparse.Namespace) -> "tuple[dict[str, Any], Diagnosis | None]":
    """Return the figures and the findings, with a progress line."""
    from metaprior.cli.explanation.figures import all_figures
    from metaprior.cli.explanation.page import SECTIONS
    from metaprior.estimators.progress import counting_bar

    figures = {}
    with counting_bar(not args.quiet, len(SECTIONS) + 1) as advance:
        for name, drawn in all_figures(subject):
            figures[name] = drawn
            advance(name)
        diagnosis = _diagnosed(subject, args.random_state)
        advance("findings")
    return figures, diagnosis


def _diagnosed(subject: "Subject", seed: int) -> "Diagnosis | None":
    if subject.y is None:
        return None
    from metaprior.diagnosis import diagnose

    return diagnose(subject.model.estimator, subject.x, subject.y, random_state=seed)
