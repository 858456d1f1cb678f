"""The training table of `metaprior fit` and `metaprior compare`: the options for its columns, and its schema."""

import argparse
from typing import TYPE_CHECKING

from metaprior.cli.options import add_table, csv_form
from metaprior.cli.result import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from metaprior.tables import Schema


def add_training_table(parser: argparse.ArgumentParser) -> None:
    """Add the table, the column to predict, and what the other columns contain."""
    parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    add_table(parser, "table", "the training table")
    group = parser.add_argument_group("the columns")
    group.add_argument(
        "--task",
        choices=("regression", "classification"),
        help="default: classification if the target is text, true or false, two whole numbers, or at most 10 whole "
        "numbers with 10 rows each on average; else regression",
    )
    for name, what in (
        ("ignore", "a column to leave out"),
        ("categorical", "a column to treat as categories, whatever it contains"),
    ):
        group.add_argument(f"--{name}", action="append", default=[], metavar="COLUMN", help=f"{what} (repeatable)")
    group.add_argument(
        "--date",
        action="append",
        default=[],
        metavar="COLUMN[:FORMAT]",
        help="a column of dates (repeatable), with their format, such as %%d.%%m.%%Y; dates written as 2024-01-31 or "
        "2024-01-31T12:30 are found without this option. Dates become days since the first one",
    )
    group.add_argument(
        "--impute",
        choices=("mean", "median", "most-frequent"),
        help="fill missing values in all tables (in categories, with the most frequent one); default: an error",
    )


def training_table(args: argparse.Namespace) -> "tuple[pd.DataFrame, Schema]":
    """Return the training table and its schema."""
    from metaprior.tables import learned_schema, read_table

    form = csv_form(args)
    asked = [item.partition(":")[0] for item in args.date] + args.date
    frame = read_table(args.table, form, text=[*args.categorical, *asked])
    dates = dict(_date(item, list(frame.columns)) for item in args.date)
    _check_columns(args, dates)
    schema = learned_schema(
        frame,
        args.target,
        task=_task(args),
        ignore=args.ignore,
        categorical=args.categorical,
        dates=dates,
        impute=args.impute,
    )
    return frame, schema


def _check_columns(args: argparse.Namespace, dates: dict[str, str | None]) -> None:
    """Raise an error if the options say two things of one column."""
    if args.target in args.ignore:
        raise UsageError(f"--ignore: {args.target!r} is the column to predict; ignore other columns only")
    if args.target in dates:
        raise UsageError(f"--date: {args.target!r} is the column to predict; expected numbers or classes there")
    for name in dates:
        if name in args.categorical:
            raise UsageError(f"--date and --categorical: expected one of them for the column {name!r}; got both")


def _task(args: argparse.Namespace) -> str | None:
    """Return the task that the options name or imply, or None if the values of the target decide."""
    if args.task is None and args.target in args.categorical:
        return "classification"
    return args.task or ("regression" if args.likelihood else None)


def _date(text: str, columns: list[str]) -> tuple[str, str | None]:
    """Return the column and the format of COLUMN:FORMAT. The name of a column may contain a colon."""
    if text in columns:
        return text, None
    name, _, form = text.partition(":")
    return name, form or None
