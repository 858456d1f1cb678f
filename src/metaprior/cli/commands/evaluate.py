"""`metaprior evaluate`: score a model's predictions on a table with known targets."""

import argparse

from metaprior.cli.options import add_model, add_table, add_unseen, check_inputs, loaded, table_of
from metaprior.cli.result import Result, aligned
from metaprior.cli.score_meanings import MEANINGS

SUMMARY = "score a model on a table with known targets"
EXAMPLES = """\
  metaprior evaluate model.metaprior test.csv
  metaprior evaluate model.metaprior test.parquet --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_model(parser)
    add_table(parser, "table", "a table with the columns of the training table, including the target")
    add_unseen(parser)


def run(args: argparse.Namespace) -> Result:
    """Predict and score."""
    check_inputs(args)
    model = loaded(args.model)
    frame = table_of(args, model, [])
    scores = model.scores(frame, allow_unseen=args.allow_unseen)
    target = model.schema.target
    data = {"task": target.task, "target": target.name, "rows": len(frame), "scores": scores}
    rows = [(name, f"{value:<10.4g}  {MEANINGS[name]}") for name, value in scores.items()]
    return Result(data, f"{target.task} of {target.name!r}, {len(frame)} rows\n{aligned(rows)}")
