"""`metaprior fit`: fit a model to a table and write it to a file."""

import argparse
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from metaprior import __version__
from metaprior.cli.describe import chosen_in_words, described
from metaprior.cli.estimator_options import add_estimator, estimator_of
from metaprior.cli.options import add_output, add_table, check_inputs, check_output, csv_form
from metaprior.cli.result import Result, UsageError, aligned, counted

if TYPE_CHECKING:
    import pandas as pd

    from metaprior.tables import Schema
    from metaprior.tables.model import TableModel

SUMMARY = "fit a model to a table and write it to a file"
EXAMPLES = """\
  metaprior fit train.csv --target price --out model.metaprior
  metaprior fit train.parquet --target sold --task classification --ignore id --out model.metaprior
  metaprior fit sales.csv --target units --date day:%d.%m.%Y --input-kernel "periodic(period=7)@day + rbf" --out m.mp
  metaprior fit data.csv --separator ";" --decimal , --encoding cp1252 --impute median --target y --out model.metaprior
"""
#: Packages whose versions are saved with the model.
REMEMBERED = ("jax", "numpy", "pandas")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    add_output(parser, "where the model is written, for instance model.metaprior", required=True)
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="save the run to this folder as it goes; if it is stopped or killed, the same command resumes it",
    )
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
        help="a column of dates (repeatable), with their format, such as %%d.%%m.%%Y; default: 2024-01-31 or "
        "2024-01-31T12:30. Dates become days since the first one",
    )
    group.add_argument(
        "--impute",
        choices=("mean", "median", "most-frequent"),
        help="fill missing values in all tables (in categories, with the most frequent one); default: an error",
    )
    add_estimator(parser)


def run(args: argparse.Namespace) -> Result:
    """Fit and save."""
    if args.checkpoint == "":
        raise UsageError("--checkpoint: expected the name of a folder; got ''")
    check_output(args)
    check_inputs(args)
    frame, schema = _table(args)
    estimator = estimator_of(args, schema).set_params(verbose=not args.quiet)
    x, y = schema.encoded(frame), schema.target.encoded(frame[args.target])
    started = time.perf_counter()
    estimator.fit(x, y, checkpoint=args.checkpoint)
    seconds = time.perf_counter() - started
    model = _kept(estimator.set_params(verbose=False), schema, len(frame))
    model.save(args.out, overwrite=args.force)
    data = {"model": args.out, **described(model), "seconds": round(seconds, 3)}
    return Result(data, _text(data))


def _check_columns(args: argparse.Namespace, dates: dict[str, str | None]) -> None:
    """Raise an error if the options say two things of one column."""
    if args.target in args.ignore:
        raise UsageError(f"--ignore: {args.target!r} is the column to predict; ignore other columns only")
    if args.target in dates:
        raise UsageError(f"--date: {args.target!r} is the column to predict; expected numbers or classes there")
    for name in dates:
        if name in args.categorical:
            raise UsageError(f"--date and --categorical: expected one of them for the column {name!r}; got both")


def _table(args: argparse.Namespace) -> "tuple[pd.DataFrame, Schema]":
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


def _kept(estimator: Any, schema: "Schema", num_rows: int) -> "TableModel":
    from metaprior.tables.model import TableModel

    summary = {
        "rows": num_rows,
        "steps": int(estimator.n_iter_),
        "elbo": float(estimator.elbo_history_[-100:].mean()),
        "versions": {"metaprior": __version__, **{name: version(name) for name in REMEMBERED}},
    }
    return TableModel(estimator, schema, summary)


def _text(data: dict[str, Any]) -> str:
    sizes = f"{counted(len(data['columns']), 'column')} ({counted(len(data['features']), 'feature')})"
    rows = [
        ("model", f"{data['estimator']}, network {'-'.join(map(str, data['network']))}, {data['rows']} rows"),
        ("input kernel", data["input_kernel"] or "none"),
        *chosen_in_words(data["kernel_search"]),
        ("training", f"{data['steps']} steps in {data['seconds']:.1f} s, ELBO {data['elbo']:.1f}"),
    ]
    return f"{data['model']}: {data['task']} of {data['target']!r} on {sizes}\n{aligned(rows)}"
