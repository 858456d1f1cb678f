"""Tables in files: CSV and Parquet, to data frames and back.

Nothing is guessed in silence: a file whose rows do not fit its header, whose columns share a name or whose bytes are
not in the encoding that was said is refused, in words that say what to do.
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

#: Texts of a CSV file that mean a missing value, besides nothing at all.
MISSING = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
#: How a file begins that is no CSV file.
PARQUET, ZIP = b"PAR1", b"PK\x03\x04"
PARQUET_SUFFIXES = (".parquet", ".pq")
#: The name of the standard input.
STDIN = "-"


class CSVForm(NamedTuple):
    """How a CSV file is written; a Parquet file says so itself.

    Parameters
    ----------
    separator : str or None
        Between fields; None is a tab for .tsv and .tab, else a comma.
    decimal : str
        Before the decimals of a number.
    encoding : str
        Of the text.
    missing : tuple of str
        Texts that mean a missing value, besides nothing at all.
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    missing: tuple[str, ...] = MISSING


USUAL_FORM = CSVForm()


def pandas() -> Any:
    """Return pandas, or say how to get it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('tables need pandas; pip install "metaprior[cli]".') from error
    return pandas


def read_table(path: str | Path, form: CSVForm = USUAL_FORM, *, text: Collection[str] = ()) -> "pd.DataFrame":
    """Return the table of a CSV or Parquet file.

    Parameters
    ----------
    path : str or path
        A Parquet file is known by its first bytes, anything else is taken for CSV; "-" is CSV from the standard input.
    form : CSVForm
        How a CSV file is written.
    text : collection of str
        Columns of a CSV file that are kept as they are written, so that "007" stays "007". Others become numbers or
        booleans where all their values are.
    """
    source: Any = Path(path)
    if str(path) == STDIN:
        source = io.BytesIO(sys.stdin.buffer.read())
    elif not source.is_file():
        raise FileNotFoundError(f"{path} is a folder, not a file." if source.is_dir() else f"there is no file {path}.")
    beginning = _beginning(source)
    if beginning == ZIP and source.suffix != ".zip":
        raise TableError(f"{path} is no CSV file but a zip archive or an Excel workbook; export the sheet as CSV.")
    frame = _parquet(source) if beginning == PARQUET else _csv(source, str(path), form, text)
    if not len(frame):
        raise TableError(f"{path} has a header and no rows; expected at least one row.")
    return frame


def write_table(frame: "pd.DataFrame", path: str | Path, *, overwrite: bool = False) -> None:
    """Write a table to a Parquet file (.parquet, .pq) or a CSV file (any other name), atomically."""
    from metaprior.io.saving import write_atomically

    target = Path(path)
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} exists; give another name, or allow it to be overwritten.")
    content = _to_parquet(frame) if is_parquet(target) else csv_text(frame, _separator(str(path), None)).encode()
    write_atomically(target, content)


def csv_text(frame: "pd.DataFrame", separator: str = ",") -> str:
    """Return a table as CSV; numbers with all their digits."""
    return frame.to_csv(index=False, sep=separator, lineterminator="\n")


def is_parquet(path: str | Path) -> bool:
    """Return whether a file's name is that of a Parquet file."""
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
        raise TableError(f"{source} is no Parquet file, or is not complete ({error}).") from error
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
    """Let pandas read; say in plain words what it does not like."""
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
            f"{name} is not written in {options['encoding']} ({error}); say its encoding: --encoding cp1252, latin-1, "
            "utf-16 or another."
        ) from error
    except pd.errors.ParserWarning as error:
        raise TableError(
            f"{name} has rows with more fields than its header; expected a name for each field."
        ) from error
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise TableError(f"{name} cannot be read as CSV: {reason} (separator {options['sep']!r}).") from error


def _exact() -> dict[str, str]:
    """Return what makes pandas read numbers to the last bit; from 3.1 on it does so unasked."""
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
    """Say so where a header of one field looks like many."""
    others = [
        other for other in (";", "\t", "|", ",") if other != separator and len(header) == 1 and other in header[0]
    ]
    if others:
        shown = "tab" if others[0] == "\t" else f"'{others[0]}'"
        raise TableError(
            f"{name} has a single column, {header[0]!r}, when fields are separated by {separator!r}; "
            f"say what separates them: --separator {shown}."
        )


def _without_unnamed(frame: "pd.DataFrame", header: list[str]) -> "pd.DataFrame":
    """Return the table without columns that have no name (a saved index, a separator at the end of lines)."""
    unnamed = [number for number, item in enumerate(header) if not item]
    if unnamed:
        places = ", ".join(str(number + 1) for number in unnamed)
        warnings.warn(f"column {places} has no name and is ignored.", UserWarning, stacklevel=5)
    return frame.drop(columns=frame.columns[unnamed])
