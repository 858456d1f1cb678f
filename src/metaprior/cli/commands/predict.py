"""`metaprior predict`: write a model's predictions for the rows of a table."""

import argparse

from metaprior.cli.options import (
    add_model,
    add_output,
    add_table,
    add_unseen,
    check_inputs,
    check_output,
    loaded,
    table_of,
)
from metaprior.cli.result import Result

SUMMARY = "predict the rows of a table: mean, spread and intervals, or class probabilities and entropy"
EXAMPLES = """\
  metaprior predict model.metaprior new.csv --out predictions.csv
  metaprior predict model.metaprior new.parquet --out predictions.parquet --id customer --interval 0.5 --interval 0.9
  cat new.csv | metaprior predict model.metaprior - > predictions.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_model(parser)
    add_table(parser, "table", "the rows to predict, with the columns of the training table in any order")
    add_output(
        parser,
        "where the predictions are written, as Parquet for .parquet and .pq, else as CSV; default: CSV on stdout",
        required=False,
    )
    parser.add_argument(
        "--interval",
        type=_level,
        action="append",
        metavar="LEVEL",
        help="for regression, add the ends of the central interval that contains y with this probability (repeatable); "
        "default: 0.95",
    )
    parser.add_argument(
        "--id", action="append", default=[], metavar="COLUMN", help="copy this column to the predictions (repeatable)"
    )
    parser.add_argument(
        "--escape-formulas",
        action="store_true",
        help="in CSV, write an apostrophe before texts that a spreadsheet would run as formulas; default: a note",
    )
    add_unseen(parser)


def run(args: argparse.Namespace) -> Result:
    """Predict and write."""
    from metaprior.tables import write_table
    from metaprior.tables.files import csv_text, is_parquet
    from metaprior.tables.formulas import for_csv

    check_output(args)
    check_inputs(args)
    model = loaded(args.model)
    frame = table_of(args, model, args.id)
    intervals = args.interval or [0.95]
    predicted = model.predict(frame, intervals=intervals, keep=args.id, allow_unseen=args.allow_unseen)
    if not args.json if args.out is None else not is_parquet(args.out):
        predicted = for_csv(predicted, escape=args.escape_formulas)
    data = {"task": model.schema.target.task, "target": model.schema.target.name, "rows": len(predicted)}
    if args.out is not None:
        write_table(predicted, args.out, overwrite=args.force)
        columns = ", ".join(predicted.columns)
        return Result(
            {"predictions": args.out, **data, "columns": list(predicted.columns)},
            f"{args.out}: {len(predicted)} rows of {columns}",
        )
    if args.json:
        return Result({**data, "predictions": predicted.to_dict("records")}, "")
    return Result(data, csv_text(predicted).encode())


def _level(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = 0.0
    if not 0 < level < 1:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, such as 0.9; got {text!r}")
    return level
