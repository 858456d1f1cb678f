"""Read tables from CSV and Parquet files, and write them.

Nothing is guessed silently. A file is rejected if its rows do not fit its header, if two columns have the same name, or
if it is not in the given encoding. The error says what to do. A file that is compressed (CSV as gzip, bzip2, xz or zip,
and every Parquet file) is measured before it is read, and rejected if it unpacks to more than a limit.
"""

import codecs
import csv
import functools
import io
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from metaprior.extras import imported, missing_library
from metaprior.io.unpacking import PIECE, TooLargeError, form_of, open_unpacked, too_large, unpacking_limit
from metaprior.tables.errors import TableError, check_names
from metaprior.tables.parquet import read_parquet
from metaprior.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

#: Texts in a CSV file that mean a missing value, as an empty field does.
MISSING = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null")
#: The first bytes of a Parquet file, and where in a tar archive its mark stands.
PARQUET, TAR = b"PAR1", slice(257, 262)
PARQUET_SUFFIXES = (".parquet", ".pq")
#: The bytes in which the header of a CSV file has to end.
HEADER = 2**22
#: What every field of a compressed CSV file counts, in bytes, beside its text: so much memory it takes at least.
FIELD = 16
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
    return imported("pandas", part="a table", extra="cli")


def read_table(path: str | Path, form: CSVForm = USUAL_FORM, *, text: Collection[str] = ()) -> "pd.DataFrame":
    """Read a CSV or Parquet file into a data frame.

    Parameters
    ----------
    path : str or path
        A Parquet file is recognised by its first bytes, and anything else is read as CSV. A CSV file may be compressed
        with gzip, bzip2 or xz, or be the only file in a .zip file. "-" is the standard input.
    form : CSVForm
        How a CSV file is written.
    text : collection of str
        Columns of a CSV file that are read as text, so that "007" stays "007". Other columns become numbers or
        booleans if all their values are.

    Raises
    ------
    TableError
        The file is not a table that can be read.
    metaprior.io.unpacking.TooLargeError
        What a compressed file or the standard input holds is more than METAPRIOR_MAX_UNPACKED bytes (an environment
        variable; 512 MiB if it is not set).
    """
    if str(path) == STDIN:
        frame = _csv(_stdin(), STDIN, form, text)
    else:
        source = Path(path)
        if not source.is_file():
            raise FileNotFoundError(
                f"{path} is a folder, not a file." if source.is_dir() else f"there is no file {path}."
            )
        with source.open("rb") as file:
            beginning = file.read(8)
        frame = _parquet(source) if beginning.startswith(PARQUET) else _csv_file(source, beginning, form, text)
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


# --- Parquet ------------------------------------------------------------------------


def _parquet(source: Path) -> "pd.DataFrame":
    pandas()
    try:
        frame = read_parquet(source)
    except ImportError as error:
        raise missing_library("pyarrow", part="a Parquet file (unlike a CSV file)", extra="cli") from error
    except (TableError, TooLargeError):
        raise
    except (ValueError, OSError, LookupError, ArithmeticError, NotImplementedError, TypeError) as error:
        raise TableError(f"{source} is not a Parquet file, or is incomplete ({error}).") from error
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    check_names(str(source), list(frame.columns))
    return frame


def _to_parquet(frame: "pd.DataFrame") -> bytes:
    content = io.BytesIO()
    try:
        frame.to_parquet(content, engine="pyarrow", index=False)
    except ImportError as error:
        raise missing_library("pyarrow", part="a Parquet file (unlike a CSV file)", extra="cli") from error
    return content.getvalue()


# --- CSV ----------------------------------------------------------------------------


def _stdin() -> Callable[[], IO[bytes]]:
    limit = unpacking_limit()
    content = sys.stdin.buffer.read(limit + 1)
    if len(content) > limit:
        raise too_large("the standard input", limit)
    return functools.partial(io.BytesIO, content)


def _csv_file(source: Path, beginning: bytes, form: CSVForm, text: Collection[str]) -> "pd.DataFrame":
    compressed = form_of(beginning)
    if compressed == "zip" and source.suffix.lower() != ".zip":
        raise TableError(f"{source} is not a CSV file but a zip archive or an Excel workbook; export the sheet as CSV.")
    if compressed is None:
        return _csv(lambda: source.open("rb"), str(source), form, text)
    with open_unpacked(source) as stream:
        inner = stream.read(512)
    if form_of(inner) or inner.startswith(PARQUET) or inner[TAR] == b"ustar":
        raise TableError(f"{source} holds an archive or a compressed file, not a CSV file; unpack it first.")
    return _csv(functools.partial(open_unpacked, source), str(source), form, text, measured=True)


def _csv(
    opened: Callable[[], IO[bytes]], name: str, form: CSVForm, text: Collection[str], *, measured: bool = False
) -> "pd.DataFrame":
    """Read CSV from a stream that can be opened again; `measured` says that its size has to be checked first."""
    separator = _separator(name, form.separator)
    _check_encoding(form.encoding)
    with _encoding_told(name, form.encoding):
        if measured:
            _check_size(opened, name, separator, form.encoding)
        header = _header(opened, name, separator, form.encoding)
    check_names(name, [item for item in header if item])
    _check_separated(name, header, separator)
    names = [item or f"column {number} without a name" for number, item in enumerate(header, 1)]
    frame = _parsed(
        opened,
        name,
        sep=separator,
        encoding=form.encoding,
        skipinitialspace=True,
        keep_default_na=False,
        header=0,
        names=names,
        index_col=False,
        decimal=form.decimal,
        na_values=["", *form.missing],
        dtype={column: str for column in names if column in text},
        low_memory=False,
        **_exact(),
    )
    return _without_unnamed(frame, header)


def _check_size(opened: Callable[[], IO[bytes]], name: str, separator: str, encoding: str) -> None:
    """Raise an error if a compressed file holds more than the limit; nothing of it is kept."""
    limit, size, decode = unpacking_limit(), 0, codecs.getincrementaldecoder(encoding)().decode
    with opened() as stream:
        while piece := stream.read(PIECE):
            characters = decode(piece)
            rows = max(characters.count("\n"), characters.count("\r"))
            size += len(piece) + FIELD * (rows + characters.count(separator))
            if size > limit:
                raise too_large(f"{name} (where each field counts as {FIELD} bytes beside its text)", limit)


def _header(opened: Callable[[], IO[bytes]], name: str, separator: str, encoding: str) -> list[str]:
    """Return the names in the first row that is not empty."""
    with opened() as stream:
        window = stream.read(HEADER)
    lines = io.StringIO(codecs.getincrementaldecoder(encoding)().decode(window).removeprefix("\ufeff"), newline="")
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        found = next((row for row in rows if len(row) > 1 or any(field.strip() for field in row)), None)
    except csv.Error as error:
        raise TableError(f"{name} has a header that cannot be read as CSV ({error}).") from error
    if found is None and len(window) < HEADER:
        raise TableError(f"{name} is empty; expected a header and rows.")
    if found is None or (len(window) == HEADER and not lines.read(1)):
        raise TableError(f"{name}: expected a header of at most {HEADER:,} bytes; its first row is longer.")
    return [field.strip() for field in found]


def _parsed(opened: Callable[[], IO[bytes]], name: str, **options: Any) -> "pd.DataFrame":
    """Read with pandas, and turn its errors into plain messages."""
    pd = pandas()
    try:
        with opened() as stream, _encoding_told(name, options["encoding"]), warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(stream, **options)
    except pd.errors.EmptyDataError as error:
        raise TableError(f"{name} is empty; expected a header and rows.") from error
    except pd.errors.ParserWarning as error:
        raise TableError(
            f"{name} has rows with more fields than its header; expected a name for each field."
        ) from error
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise TableError(f"{name} cannot be read as CSV: {reason} (separator {options['sep']!r}).") from error


@contextmanager
def _encoding_told(name: str, encoding: str) -> Iterator[None]:
    """Turn errors of decoding into a message that says which encoding was expected."""
    try:
        yield
    except UnicodeError as error:
        raise TableError(
            f"{name} is not encoded in {encoding} ({error}); name its encoding, for instance "
            "--encoding cp1252, latin-1 or utf-16."
        ) from error


def _exact() -> dict[str, str]:
    """Return the option with which pandas reads numbers exactly; from version 3.1 on that is its default."""
    major, minor = (int(part) for part in pandas().__version__.split(".")[:2])
    return {"float_precision": "round_trip"} if (major, minor) < (3, 1) else {}


def _separator(name: str, asked: str | None) -> str:
    if asked and len(asked) != 1:
        raise TableError(f"separator: expected one character; got {asked!r}.")
    return asked or ("\t" if Path(name).suffix.lower() in (".tsv", ".tab") else ",")


def _check_encoding(encoding: str) -> None:
    try:
        "".encode(encoding)
    except LookupError as error:
        raise TableError(f"encoding: expected one of text, such as utf-8, cp1252 or latin-1; {error}.") from error


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
        warn_user(f"column {places} has no name and is ignored; a name in the first row would keep it.")
    return frame.drop(columns=frame.columns[unnamed])
