"""Options that several commands share: the table and the form of CSV files, the model's file, the output file."""

import argparse
import codecs
from pathlib import Path
from typing import TYPE_CHECKING

from metaprior.cli.result import UsageError
from metaprior.io.atomic import kind_of_file

if TYPE_CHECKING:
    import pandas as pd

    from metaprior.tables import CSVForm
    from metaprior.tables.model import TableModel


def add_table(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """Add a table, and options for how to read it."""
    parser.add_argument(name, metavar=f"{name.upper()}", help=f"{what}: CSV or Parquet; - reads CSV from stdin")
    group = parser.add_argument_group("how a CSV file is written")
    group.add_argument(
        "--separator", type=_separator, metavar="CHAR", help="field separator ('tab' for tabs); default: a comma"
    )
    group.add_argument("--decimal", default=".", metavar="CHAR", help="decimal separator of numbers; default: a point")
    group.add_argument("--encoding", type=_encoding, default="utf-8", help="text encoding; default: utf-8")
    group.add_argument(
        "--missing",
        action="append",
        metavar="TEXT",
        help="a text that, like an empty field, means a missing value (repeatable); default: NA, N/A, n/a, #N/A, <NA>, "
        "NaN, nan, NULL, null",
    )


def csv_form(args: argparse.Namespace) -> "CSVForm":
    """Return how CSV files are written."""
    from metaprior.tables.files import MISSING, CSVForm

    if len(args.decimal) != 1:
        raise UsageError(f"--decimal: expected one character; got {args.decimal!r}")
    missing = MISSING if args.missing is None else tuple(args.missing)
    return CSVForm(args.separator, args.decimal, args.encoding, missing)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the model's file."""
    parser.add_argument("model", metavar="MODEL", help="a file written by 'metaprior fit'")


def loaded(path: str) -> "TableModel":
    """Load a model, and raise an error if it was not fitted to a table."""
    from metaprior.io.saving import load
    from metaprior.tables.model import TableModel

    model = load(path)
    if not isinstance(model, TableModel):
        raise ValueError(
            f"{path} contains a {type(model).__name__} that was saved from Python and knows no table columns; load it "
            "in Python with metaprior.load, or fit again with 'metaprior fit'."
        )
    return model


def table_of(args: argparse.Namespace, model: "TableModel", text: list[str]) -> "pd.DataFrame":
    """Read the table that a model is applied to. The columns `text` are kept as text."""
    from metaprior.tables import read_table

    return read_table(args.table, csv_form(args), text=[*model.schema.text_columns(), *text])


def add_unseen(parser: argparse.ArgumentParser) -> None:
    """Add the option that allows categories that were not in the training table."""
    parser.add_argument(
        "--allow-unseen",
        action="store_true",
        help="treat a category that was not in the training table as none of the known ones (default: an error)",
    )


def add_output(parser: argparse.ArgumentParser, what: str, *, required: bool) -> None:
    """Add the output file."""
    parser.add_argument("--out", metavar="FILE", required=required, help=what)
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it exists")


def check_output(args: argparse.Namespace) -> None:
    """Raise an error before the work starts if its result could not be written."""
    if args.out is None:
        return
    target = Path(args.out)
    if target.is_dir():
        raise IsADirectoryError(f"--out: {target} is a folder; expected the name of a file.")
    if target.exists() and not target.is_file():
        what = kind_of_file(target.stat().st_mode)
        raise OSError(f"--out: {target} is {what}; expected the name of a file.")
    if target.exists() and not args.force:
        raise FileExistsError(f"--out: {target} exists; give another name, or use --force to overwrite it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"--out: there is no folder {target.parent}; create it first.")


def _separator(text: str) -> str:
    found = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(found) != 1:
        raise argparse.ArgumentTypeError(f"expected one character, or 'tab'; got {text!r}")
    return found


def _encoding(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError as error:
        raise argparse.ArgumentTypeError(
            f"there is no encoding {text!r}; expected, for instance, utf-8, cp1252 or latin-1"
        ) from error
