"""Options that several commands share: the table and the form of CSV files, the model's file, the output file."""

import argparse
import codecs
from pathlib import Path
from typing import TYPE_CHECKING

from metaprior.cli.result import UsageError
from metaprior.cli.streams import check_stdin
from metaprior.io.atomic import kind_of_file

if TYPE_CHECKING:
    import pandas as pd

    from metaprior.tables import CSVForm
    from metaprior.tables.model import TableModel

#: The name that stands for the standard input, where a table is read.
STDIN = "-"


def add_table(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """Add a table, and options for how to read it."""
    parser.add_argument(name, metavar=f"{name.upper()}", help=f"{what}: CSV or Parquet; - reads CSV from stdin")
    group = parser.add_argument_group("how a CSV file is written")
    group.add_argument(
        "--separator", type=_separator, metavar="CHAR", help="field separator ('tab' for tabs); default: a comma"
    )
    group.add_argument(
        "--decimal", type=_decimal, default=".", metavar="CHAR", help="decimal separator of numbers; default: a point"
    )
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

    if args.decimal == args.separator:
        raise UsageError(f"--decimal and --separator: expected two different characters; got {args.decimal!r} twice")
    missing = MISSING if args.missing is None else tuple(args.missing)
    return CSVForm(args.separator, args.decimal, args.encoding, missing)


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the model's file."""
    parser.add_argument("model", metavar="MODEL", help="a file written by 'metaprior fit'")


def check_inputs(args: argparse.Namespace) -> None:
    """Raise an error before the work starts if the model or the table that a command reads is not a file."""
    for path in (vars(args).get("model"), vars(args).get("table")):
        if path == STDIN and path == vars(args).get("table"):
            check_stdin()
        elif path is not None and not Path(path).is_file():
            raise FileNotFoundError(f"expected a file; {_instead_of_a_file(Path(path))}.")


def _instead_of_a_file(path: Path) -> str:
    """Return what a path names that is not a file."""
    if not path.exists():
        return f"there is no file {path}"
    if path.is_dir():
        return f"{path} is a folder"
    return f"{path} is a {'pipe' if path.is_fifo() else 'device or a socket'}; to read a table from a pipe, name it -"


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


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the seed of what is random."""
    parser.add_argument("--seed", type=seed_of, default=0, dest="random_state", metavar="N", help=f"{what}; default: 0")


def seed_of(text: str) -> int:
    """Return a seed; for argparse."""
    if not (text.isdecimal() and len(text) <= 10 and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to {2**32 - 1}; got {text!r}")
    return int(text)


def add_output(parser: argparse.ArgumentParser, what: str, *, required: bool) -> None:
    """Add the output file."""
    parser.add_argument("--out", metavar="FILE", required=required, help=what)
    parser.add_argument("--force", action="store_true", help="overwrite FILE if it exists")


def check_output(args: argparse.Namespace) -> None:
    """Raise an error before the work starts if its result could not be written."""
    if args.out is None:
        return
    target = Path(args.out)
    if not args.out or target.is_dir():
        raise IsADirectoryError(f"--out: expected the name of a file; {args.out!r} is a folder.")
    if target.exists() and not target.is_file():
        what = kind_of_file(target.stat().st_mode)
        raise FileExistsError(f"--out: {target} is {what}; give the name of a file.")
    if target.exists() and not args.force:
        raise FileExistsError(f"--out: {target} exists; give another name, or use --force to overwrite it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"--out: there is no folder {target.parent}; create it first.")


def _separator(text: str) -> str:
    found = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(found) != 1 or found in '\r\n"':
        raise argparse.ArgumentTypeError(
            f"expected one character, or 'tab', and neither a quotation mark nor the end of a line; got {text!r}"
        )
    return found


def _decimal(text: str) -> str:
    if len(text) != 1 or not text.isascii() or not text.isprintable() or text.isalnum() or text in '"+- ':
        raise argparse.ArgumentTypeError(f"expected one character, a point or a comma; got {text!r}")
    return text


def _encoding(text: str) -> str:
    try:
        "a".encode(text)  # an error for what turns bytes into bytes, such as base64
        return codecs.lookup(text).name
    except (LookupError, UnicodeError) as error:
        raise argparse.ArgumentTypeError(
            f"there is no encoding {text!r}; expected, for instance, utf-8, cp1252 or latin-1"
        ) from error
