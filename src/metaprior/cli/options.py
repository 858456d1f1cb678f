"""Options that several commands share: how CSV files are written, where results go, the model's file."""

import argparse
import codecs
from pathlib import Path
from typing import TYPE_CHECKING

from metaprior.cli.result import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from metaprior.tables import CSVForm
    from metaprior.tables.model import TableModel


def add_table(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """Add a table and the options of reading it."""
    parser.add_argument(name, metavar=f"{name.upper()}", help=f"{what}: CSV or Parquet; - is CSV from stdin")
    group = parser.add_argument_group("how a CSV file is written")
    group.add_argument(
        "--separator", type=_separator, metavar="CHAR", help="between fields ('tab' for tabs); default: a comma"
    )
    group.add_argument(
        "--decimal", default=".", metavar="CHAR", help="before the decimals of a number; default: a point"
    )
    group.add_argument("--encoding", type=_encoding, default="utf-8", help="of the text; default: utf-8")
    group.add_argument(
        "--missing",
        action="append",
        metavar="TEXT",
        help="a text that means a missing value, as an empty field does (repeat for more); default: NA, N/A, n/a, "
        "#N/A, <NA>, NaN, nan, NULL, null",
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
    """Return the model of a file; an error where it knows nothing of tables."""
    from metaprior.io.saving import load
    from metaprior.tables.model import TableModel

    model = load(path)
    if not isinstance(model, TableModel):
        raise ValueError(
            f"{path} holds a {type(model).__name__} that was saved from Python and knows no columns of a table; load "
            "it there (metaprior.load), or fit again by 'metaprior fit'."
        )
    return model


def table_of(args: argparse.Namespace, model: "TableModel", text: list[str]) -> "pd.DataFrame":
    """Return the table of a command that uses a model; these columns are kept as they are written."""
    from metaprior.tables import read_table

    return read_table(args.table, csv_form(args), text=[*model.schema.text_columns(), *text])


def add_unseen(parser: argparse.ArgumentParser) -> None:
    """Add what to do with categories that the training table had not."""
    parser.add_argument(
        "--allow-unseen",
        action="store_true",
        help="take a category that was not in the training table as none of those that were (default: an error)",
    )


def add_output(parser: argparse.ArgumentParser, what: str, *, required: bool) -> None:
    """Add the file that is written."""
    parser.add_argument("--out", metavar="FILE", required=required, help=what)
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it exists")


def check_output(args: argparse.Namespace) -> None:
    """Say before the work that its result could not be written after it."""
    if args.out is None:
        return
    target = Path(args.out)
    if target.is_dir():
        raise IsADirectoryError(f"--out: {target} is a folder; expected the name of a file.")
    if target.exists() and not args.force:
        raise FileExistsError(f"--out: {target} exists; give another name, or --force to overwrite it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"--out: there is no folder {target.parent}; make it first.")


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
            f"there is no encoding {text!r}; for instance utf-8, cp1252, latin-1"
        ) from error
