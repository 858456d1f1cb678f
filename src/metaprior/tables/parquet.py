"""Parquet files, measured before they are read: a few hundred bytes can hold gigabytes.

A file describes itself at its end, and what it says need not be true. So the headers of all pages are read too, because
what pyarrow allocates follows from them. A number takes a fixed number of bytes. A text can be stored once and stand in
many rows, so a column of texts is read in pieces, as positions in a list of different texts, and the lengths are added
up. (pyarrow's own view of the description is not used: it ends the process where a description is damaged.)
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metaprior.io.unpacking import too_large, unpacking_limit
from metaprior.tables.errors import TableError, check_names
from metaprior.tables.thrift import I32, I64, Struct, read_struct

if TYPE_CHECKING:
    import pandas as pd

#: The first and the last bytes of a file.
MARK = b"PAR1"
#: The largest description of a file; reading it takes a second.
DESCRIPTION = 2**22
#: Bytes in which the header of a page has to end: so many are tried first, and so many more in the end.
HEADER, LONGEST_HEADER = 2**9, 2**16
#: What a value takes in memory at least, in bytes.
VALUE = 8
#: How many rows of texts are measured at once; fewer where a text is stored as its difference from the one before.
ROWS = 2**16
#: The bytes of text that are then measured at once, and how many such pieces there may be.
PIECE, MAX_PIECES = 2**23, 100_000
#: Numbers in the format: columns of texts, and that way to store them.
BYTE_ARRAY, DELTA_BYTE_ARRAY = 6, 7


class Page(NamedTuple):
    """What the header of a page says: bytes when unpacked, number of values, and how these are encoded."""

    size: int
    num_values: int
    encoding: int


class Column(NamedTuple):
    """A column with its pages: its name, whether its values stand directly in the rows, its kind, bytes per value."""

    name: str
    is_flat: bool
    kind: int
    width: int
    pages: list[Page]


def read_parquet(path: Path) -> "pd.DataFrame":
    """Read a Parquet file, unless it holds more than METAPRIOR_MAX_UNPACKED bytes."""
    import pandas
    import pyarrow.parquet

    rows = {}
    for column in _check_numbers(path):
        if column.kind == BYTE_ARRAY and not column.is_flat:
            raise TableError(f"{path}: column {column.name!r} is one of lists or records; expected one text per row.")
        if column.kind == BYTE_ARRAY:
            rows[column.name] = _rows_at_once(path, column.pages)
    listed = [name for name, rows_at_once in rows.items() if rows_at_once == ROWS]
    try:
        with pyarrow.parquet.ParquetFile(path, read_dictionary=listed) as file:
            _check_texts(path, file, rows)
        return pandas.read_parquet(path, engine="pyarrow")
    except pyarrow.ArrowException as error:
        raise ValueError(str(error)) from error


def _check_numbers(path: Path) -> list[Column]:
    """Return the columns, unless the values of all of them take more than the limit."""
    limit, total = unpacking_limit(), 0
    with path.open("rb") as content:
        description = _description(path, content)
        groups = description.structs(4)
        num_rows = max(description.number(3, I64), sum(group.number(3, I64) for group in groups))
        columns = _columns(content, description.structs(2), groups)
    check_names(str(path), [column.name for column in columns if column.is_flat])
    for column in columns:
        num_values = max(num_rows, sum(page.num_values for page in column.pages))
        total += max(sum(page.size for page in column.pages), num_values * max(column.width, VALUE))
    if total > limit:
        raise too_large(str(path), limit)
    return columns


def _rows_at_once(path: Path, pages: list[Page]) -> int:
    """Return how many rows of texts are measured at once: `ROWS`, if they can be read as positions in a list.

    Texts that are stored as differences cannot. Of them, no more are read than must fit into `PIECE` bytes, because no
    text is longer than the page that it stands in.
    """
    if all(page.encoding != DELTA_BYTE_ARRAY for page in pages):
        return ROWS
    rows = min(max(1, PIECE // max(1, *(page.size for page in pages))), ROWS - 1)
    if sum(page.num_values for page in pages) > MAX_PIECES * rows:
        raise TableError(f"{path}: its texts are stored in pages that are too large to be measured; write it again.")
    return rows


def _check_texts(path: Path, file: Any, rows: dict[str, int]) -> None:
    """Raise if the texts take more than the limit."""
    limit, total = unpacking_limit(), 0
    for name, rows_at_once in rows.items():
        for batch in file.iter_batches(rows_at_once, columns=[name], use_threads=False):
            (column,) = batch.columns
            total += _text_bytes(column) if rows_at_once == ROWS else column.nbytes
            if total > limit:
                raise too_large(str(path), limit)


def _text_bytes(column: Any) -> int:
    """Return the bytes of the texts in a column, which is read as positions in a list of different texts."""
    import pyarrow.compute

    lengths = np.asarray(pyarrow.compute.binary_length(column.dictionary).fill_null(0), np.int64)
    places = np.asarray(column.indices.drop_null(), np.int64)
    return int(lengths[places].sum()) + VALUE * len(column)


# --- how a file describes itself ---------------------------------------------------------


def _description(path: Path, content: IO[bytes]) -> Struct:
    """Return the struct at the end of a file, which its length and the mark follow."""
    end = content.seek(0, 2)
    content.seek(max(end - 8, 0))
    length, mark = int.from_bytes(content.read(4), "little"), content.read(4)
    if mark != MARK or length > end - 12:
        raise ValueError("its end is missing")
    if length > DESCRIPTION:
        raise TableError(
            f"{path}: expected a description of at most {DESCRIPTION:,} bytes; it has {length:,}. Write the file with "
            "fewer columns, or with more rows in a group."
        )
    content.seek(end - 8 - length)
    return read_struct(content.read(length))


def _columns(content: IO[bytes], schema: list[Struct], groups: list[Struct]) -> list[Column]:
    """Return the columns with their pages; the first element of the schema is the table itself."""
    leaves = [element for element in schema[1:] if not element.number(5, I32)]
    is_flat = len(leaves) == len(schema) - 1
    chunks = [group.structs(1) for group in groups]
    if any(len(of_group) != len(leaves) for of_group in chunks):
        raise ValueError("a group of rows has more or fewer columns than the table")
    return [
        Column(
            leaf.text(4),
            is_flat and leaf.number(3, I32) != 2,  # 2: repeated, a list
            leaf.number(1, I32),
            leaf.number(2, I32),
            [page for of_group in chunks for page in _pages(content, of_group[number].struct(3))],
        )
        for number, leaf in enumerate(leaves)
    ]


def _pages(content: IO[bytes], chunk: Struct) -> Iterator[Page]:
    """Yield the pages of a column in a group of rows."""
    first = chunk.number(9, I64)
    place = min(first, chunk.number(11, I64) or first)
    end = place + chunk.number(7, I64)
    while place < end:
        page, place = _page(content, place)
        yield page


def _page(content: IO[bytes], place: int) -> tuple[Page, int]:
    """Return what the header of a page says, and the place of the next page."""
    content.seek(place)
    data = content.read(HEADER)
    try:
        header = read_struct(data)
    except IndexError:  # the header is longer, or the file ends here
        header = read_struct(data + content.read(LONGEST_HEADER))
    first, second = header.struct(5), header.struct(8)
    num_values = first.number(1, I32) + second.number(1, I32)
    encoding = second.number(4, I32) if second.fields else first.number(2, I32)
    return Page(header.number(2, I32), num_values, encoding), place + header.end + header.number(3, I32)
