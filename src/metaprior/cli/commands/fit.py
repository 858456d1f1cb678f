"""`metaprior fit`: fit a model to a table and write it to a file."""

import argparse
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from metaprior import __version__
from metaprior.cli.describe import described, kernel_rows
from metaprior.cli.estimator_options import add_estimator, estimator_of
from metaprior.cli.held_out_scores import described_scores, held_out_scores
from metaprior.cli.holdout import FORM, holdout_of
from metaprior.cli.options import add_output, check_inputs, check_output
from metaprior.cli.result import Result, UsageError, aligned, counted
from metaprior.cli.training_table import add_training_table, training_table

if TYPE_CHECKING:
    import pandas as pd

    from metaprior.tables import Schema
    from metaprior.tables.model import TableModel

SUMMARY = "fit a model to a table and write it to a file"
EXAMPLES = """\
  metaprior fit train.csv --target price --out model.metaprior
  metaprior fit train.parquet --target sold --task classification --ignore id --out model.metaprior
  metaprior fit sales.csv --target units --date day:%d.%m.%Y --input-kernel "periodic(period=7)@day + rbf" --out m.mp
  metaprior fit sales.csv --target units --holdout last:0.2 --out model.metaprior
  metaprior fit data.csv --separator ";" --decimal , --encoding cp1252 --impute median --target y --out model.metaprior
"""
#: Packages whose versions are saved with the model.
REMEMBERED = ("jax", "numpy", "pandas")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_training_table(parser)
    add_output(parser, "where the model is written, for instance model.metaprior", required=True)
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        help="save the run to this folder as it goes; if it is stopped or killed, the same command resumes it",
    )
    parser.add_argument(
        "--holdout",
        type=holdout_of,
        metavar="PART",
        help=f"score a fit of the other rows on {FORM}, or last:0.2:COLUMN for those with the largest values there; "
        "this fit is made first, and takes about as long again. The model that is written is fitted to all rows",
    )
    add_estimator(parser)


def run(args: argparse.Namespace) -> Result:
    """Fit and save."""
    if args.checkpoint == "":
        raise UsageError("--checkpoint: expected the name of a folder; got ''")
    check_output(args)
    check_inputs(args)
    frame, schema = training_table(args)
    estimator = estimator_of(args, schema).set_params(verbose=not args.quiet)
    x, y = schema.encoded(frame), schema.target.encoded(frame[args.target])
    held_out = _held_out(args, estimator, frame, schema, x, y)
    started = time.perf_counter()
    estimator.fit(x, y, checkpoint=args.checkpoint)
    seconds = time.perf_counter() - started
    model = _kept(estimator.set_params(verbose=False), schema, len(frame), held_out)
    model.save(args.out, overwrite=args.force)
    data = {"model": args.out, **described(model), "seconds": round(seconds, 3)}
    return Result(data, _text(data))


def _held_out(
    args: argparse.Namespace, estimator: Any, frame: "pd.DataFrame", schema: "Schema", x: Any, y: Any
) -> dict[str, Any]:
    """Return what the summary says of rows that are held out: nothing if none are."""
    if args.holdout is None:
        return {}
    split = args.holdout.split(frame, schema, y, args.random_state)
    found = held_out_scores(estimator, x, y, split, args.checkpoint)
    return {"holdout": {"chosen": args.holdout.described(schema), **found}}


def _kept(estimator: Any, schema: "Schema", num_rows: int, held_out: dict[str, Any]) -> "TableModel":
    from metaprior.tables.model import TableModel

    summary = {
        "rows": num_rows,
        "steps": int(estimator.n_iter_),
        "elbo": float(estimator.elbo_history_[-100:].mean()),
        "versions": {"metaprior": __version__, **{name: version(name) for name in REMEMBERED}},
        **held_out,
    }
    return TableModel(estimator, schema, summary)


def _text(data: dict[str, Any]) -> str:
    sizes = f"{counted(len(data['columns']), 'column')} ({counted(len(data['features']), 'feature')})"
    dates = [f"{name!r}, a {what}" for name, what in data["columns"].items() if what.startswith("date from ")]
    rows = [
        ("model", f"{data['estimator']}, network {'-'.join(map(str, data['network']))}, {data['rows']} rows"),
        *kernel_rows(data),
        *([("dates", f"{'; '.join(dates)}: in days since the first")] if dates else []),
        ("training", f"{data['steps']} steps in {data['seconds']:.1f} s, ELBO {data['elbo']:.1f}"),
    ]
    lines = [f"{data['model']}: {data['task']} of {data['target']!r} on {sizes}"]
    if "holdout" in data:
        rows += described_scores(data["holdout"], data["target"])
        return "\n".join([*lines, aligned(rows), f"{data['model']} is fitted to all rows."])
    return "\n".join([*lines, aligned(rows)])
