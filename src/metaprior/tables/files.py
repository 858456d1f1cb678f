"""Read tables from CSV and Parquet files, and write them.

Nothing is guessed silently. A file is rejected if its rows do not fit its header, if two columns have the same name, or
if it is not in the given encoding. The error says what to do.
"""

import io
import sys
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from metaprior.tables.errors import TableError

if TYPE_CHECKING:
    import pandas as pd

#: Texts in a CSV file that mean a missing value, as an empty field does.
MISSING = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
#: The first bytes of files that are not CSV.
PARQUET, ZIP = b"PAR1", b"PK\x03\x04"
PARQUET_SUFFIXES = (".parquet", ".pq")
#: The name that stands for the standard input.
STDIN = "-"


class CSVForm(NamedTuple):
    """How a CSV file is written. A Parquet file describes itself.

    Parameters
    ----------
    separator : str or None
        What separates the fields. None means a tab for .tsv and .tab files, and a comma otherwise.
    decimal : str
        The decimal separator of numbers.
    encoding : str
        The encoding of the text.
    missing : tuple of str
        Texts that mean a missing value, as an empty field does.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = MISSING


USUAL_FORM = CSVForm()


def pandas() -> Any:
    """Return pandas; if it is not installed, raise an error that says how to install it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('tables need pandas; pip install "metaprior[cli]".') from error
    return pandas


def read_table(path: str | Path, form: CSVForm = USUAL_FORM, *, text: Collection[str] = ()) -> "pd.DataFrame":
    """Read a CSV or Parquet file into a data frame.

    Parameters
    ----------
    path : str or path
        A Parquet file is recognised by its first bytes, and anything else is read as CSV. "-" is the standard input.
    form : CSVForm
        How a CSV file is written.
    text : collection of str
        Columns of a CSV file that are read as text, so that "007" stays "007". Other columns become numbers or
        booleans if all their values are.
    """
    source: Any = Path(path)
    if str(path) == STDIN:
        source = io.BytesIO(sys.stdin.buffer.read())
    elif not source.is_file():
        raise FileNotFoundError(f"{path} is a folder, not a file." if source.is_dir() else f"there is no file {path}.")
    beginning = _beginning(source)
    if beginning == ZIP and source.suffix != ".zip":
        raise TableError(f"{path} is not a CSV file but a zip archive or an Excel workbook; export the sheet as CSV.")
    frame = _parquet(source) if beginning == PARQUET else _csv(source, str(path), form, text)
    if not len(frame):
        raise TableError(f"{path} has a header but no rows; expected at least one row.")
    return frame


def write_table(frame: "pd.DataFrame", path: str | Path, *, overwrite: bool = False) -> None:
    """Write a table atomically, as Parquet if the name ends in .parquet or .pq, and as CSV otherwise."""
    from metaprior.io.atomic import write_atomically

    target = Path(path)
    content = _to_parquet(frame) if is_parquet(target) else csv_text(frame, _separator(str(path), None)).encode()
    write_atomically(target, content, overwrite=overwrite)


def csv_text(frame: "pd.DataFrame", separator: str = ",") -> str:
    """Return a table as CSV text, with all digits of the numbers."""
    return frame.to_csv(index=False, sep=separator, lineterminator="\n")


def is_parquet(path: str | Path) -> bool:
    """Return whether the name of a file is that of a Parquet file."""
    return Path(path).suffix.lower() in PARQUET_SUFFIXES


def _beginning(source: Any) -> bytes:
    if isinstance(source, io.BytesIO):
        return b""
    with source.open("rb") as file:
        return file.read(4)


# --- Parquet ------------------------------------------------------------------------


def _parquet(source: Path) -> "pd.DataFrame":
    try:
        frame = pandas().read_parquet(source, engine="pyarrow")
    except ImportError as error:
        raise _no_pyarrow() from error
    except (ValueError, OSError) as error:
        raise TableError(f"{source} is not a Parquet file, or is incomplete ({error}).") from error
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    _check_names(str(source), list(frame.columns))
    return frame


def _to_parquet(frame: "pd.DataFrame") -> bytes:
    content = io.BytesIO()
    try:
        frame.to_parquet(content, engine="pyarrow", index=False)
    except ImportError as error:
        raise _no_pyarrow() from error
    return content.getvalue()


def _no_pyarrow() -> ImportError:
    return ImportError('Parquet files need pyarrow; pip install "metaprior[cli]", or use CSV.')


# --- CSV ----------------------------------------------------------------------------


def _csv(source: Any, name: str, form: CSVForm, text: Collection[str]) -> "pd.DataFrame":
    common: dict[str, Any] = {
        "sep": _separator(name, form.separator),
        "encoding": form.encoding,
        "skipinitialspace": True,
        "keep_default_na": False,
    }
    header = [str(item).strip() for item in _parsed(source, name, header=None, nrows=1, dtype=str, **common).iloc[0]]
    _check_names(name, [item for item in header if item])
    _check_separated(name, header, common["sep"])
    names = [item or f"column {number} without a name" for number, item in enumerate(header, 1)]
    kept = {column: str for column in names if column in text}
    frame = _parsed(
        source,
        name,
        header=0,
        names=names,
        index_col=False,
        decimal=form.decimal,
        na_values=["", *form.missing],
        dtype=kept,
        low_memory=False,
        **_exact(),
        **common,
    )
    return _without_unnamed(frame, header)


def _parsed(source: Any, name: str, **options: Any) -> "pd.DataFrame":
    """Read with pandas, and turn its errors into plain messages."""
    pd = pandas()
    if isinstance(source, io.BytesIO):
        source.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(source, **options)
    except pd.errors.EmptyDataError as error:
        raise TableError(f"{name} is empty; expected a header and rows.") from error
    except UnicodeError as error:
        raise TableError(
            f"{name} is not encoded in {options['encoding']} ({error}); name its encoding, for instance "
            "--encoding cp1252, latin-1 or utf-16."
        ) from error
    except pd.errors.ParserWarning as error:
        raise TableError(
            f"{name} has rows with more fields than its header; expected a name for each field."
        ) from error
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise TableError(f"{name} cannot be read as CSV: {reason} (separator {options['sep']!r}).") from error


def _exact() -> dict[str, str]:
    """Return the option with which pandas reads numbers exactly; from version 3.1 on that is its default."""
    major, minor = (int(part) for part in pandas().__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if (major, minor) < (3, 1) else {}


def _separator(name: str, asked: str | None) -> str:
    return asked or ("\t" if Path(name).suffix.lower() in (".tsv", ".tab") else ",")


def _check_names(name: str, header: list[str]) -> None:
    twice = sorted({item for item in header if header.count(item) > 1})
    if twice:
        raise TableError(
            f"{name} has more than one column called {', '.join(map(repr, twice))}; give each its own name."
        )


def _check_separated(name: str, header: list[str], separator: str) -> None:
    """Raise an error if a header of one field looks like several fields."""
    others = [
        other for other in (";", "\t", "|", ",") if other != separator and len(header) == 1 and other in header[0]
    ]
    if others:
        shown = "tab" if others[0] == "\t" else f"'{others[0]}'"
        raise TableError(
            f"{name} has a single column, {header[0]!r}, when fields are separated by {separator!r}; "
            f"name what separates them with --separator {shown}."
        )


def _without_unnamed(frame: "pd.DataFrame", header: list[str]) -> "pd.DataFrame":
    """Drop columns without a name (a saved index, or a separator at the end of each line)."""
    unnamed = [number for number, item in enumerate(header) if not item]
    if unnamed:
        places = ", ".join(str(number + 1) for number in unnamed)
        warnings.warn(f"column {places} has no name and is ignored.", UserWarning, stacklevel=5)
    return frame.drop(columns=frame.columns[unnamed])
