"""The safetensors format, read with plain reads and bounded memory, and written without copies.

A file has 8 bytes with the length of its header, the header in JSON, and the bytes of its arrays one after the other.
The header is checked before anything is allocated for an array: an array is never larger than its bytes in the file.
Reading takes the size that the file had when it was opened, and does not map it into memory, so that a file which
shrinks meanwhile is an error and not a crash.
"""

import contextlib
import errno
import io
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from metaprior.io.atomic import kind_of_file
from metaprior.io.json_text import ENTRY_BYTES, JSONText

#: The types of arrays, by the names that the format has for them.
DTYPES = {
    "BOOL": np.dtype("?"),
    **{f"{sign}{8 * size}": np.dtype(f"{sign.lower()}{size}") for sign in "UI" for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"f{size}") for size in (2, 4, 8)},
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
#: The longest header, as safetensors itself has it; the most axes of an array.
MOST_HEADER, MOST_AXES = 100_000_000, 32
#: Memory for what is built from a header or a description: so many bytes, and so many for every byte of the file.
FREE_BYTES, BYTES_PER_BYTE = 30_000_000, 3
#: Bytes for what is kept of an array besides its numbers.
ARRAY_BYTES = 500


class Entry(NamedTuple):
    """The type and the shape of an array, and where its bytes begin and end after the header."""

    dtype: np.dtype
    shape: tuple[int, ...]
    start: int
    end: int


class OpenFile(NamedTuple):
    """A file that is being read, and the size that it had at first."""

    raw: io.FileIO
    size: int

    @property
    def most_bytes(self) -> int:
        """The memory that may be taken by what is built from the header."""
        return FREE_BYTES + BYTES_PER_BYTE * self.size


class Header(NamedTuple):
    """What a file says of itself: texts by name, and its arrays."""

    texts: dict[str, str]
    entries: dict[str, Entry]


@contextlib.contextmanager
def opened(source: Path) -> Iterator[OpenFile]:
    """Open a regular file for reading; raise an OSError for anything else, without touching it."""
    try:
        _require_regular(source, os.stat(source).st_mode)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"load: there is no file {source}.") from error
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with io.FileIO(os.open(source, flags)) as raw:
        status = os.fstat(raw.fileno())
        _require_regular(source, status.st_mode)
        yield OpenFile(raw, status.st_size)


def _require_regular(source: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"load: expected a regular file; {source} is {kind_of_file(mode)}")


def read_header(file: OpenFile) -> Header:
    """Read and check the header. Nothing is read or allocated for the arrays."""
    length = int.from_bytes(_exactly(file, 8), "little")
    if length > min(MOST_HEADER, file.size - 8):
        raise ValueError(f"its header would have {length} bytes")
    encoded = _exactly(file, length)
    text = JSONText(_plain_text(encoded), file.most_bytes)
    del encoded
    texts, entries = dict[str, str](), dict[str, Entry]()
    for name in text.members():
        if name == "__metadata__":
            texts = _texts(text)
        else:
            entries[name] = _entry(text)
    text.end()
    _check_places(entries, file.size - 8 - length)
    return Header(texts, entries)


def _texts(text: JSONText) -> dict[str, str]:
    """Read an object whose members are all strings."""
    found = {}
    for name in text.members():
        text.count(ENTRY_BYTES)
        found[name] = text.string()
    return found


def _plain_text(header: bytearray) -> str:
    """Return the text of a header. Those of this library are ASCII, and escape quotes and backslashes alone."""
    others = header.replace(b"\\\\", b"")
    if not header.isascii() or others.count(b"\\") != others.count(b'\\"'):
        raise ValueError("its header is not one that metaprior writes")
    return header.decode("ascii")


def _entry(text: JSONText) -> Entry:
    """Read what the header says of one array."""
    text.count(ARRAY_BYTES)
    found = {key: text.nested_lists() for key in text.members()}
    dtype, shape, (start, end) = DTYPES.get(found["dtype"]), found["shape"], found["data_offsets"]
    if dtype is None or found.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"it has an array of an unknown type, {found['dtype']!r}")
    counts = [*shape, start, end]
    if len(shape) > MOST_AXES or not all(type(number) is int and 0 <= number < 2**62 for number in counts):
        raise ValueError("the shape of an array is not one")
    if end - start != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"an array of shape {tuple(shape)} does not have {end - start} bytes")
    return Entry(dtype, tuple(shape), start, end)


def _check_places(entries: Mapping[str, Entry], size: int) -> None:
    """Raise an error unless the arrays follow one another and fill the rest of the file."""
    place = 0
    for start, end in sorted((entry.start, entry.end) for entry in entries.values()):
        if start != place:
            raise ValueError("its arrays do not follow one another")
        place = end
    if place != size:
        raise ValueError(f"its arrays need {place} bytes, and {size} are there")


def read_arrays(file: OpenFile, entries: Mapping[str, Entry]) -> dict[str, np.ndarray]:
    """Read the arrays, each into memory of its own, right after `read_header`."""
    arrays = {}
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)):
        arrays[name] = np.empty(entry.shape, entry.dtype)
        if arrays[name].size:
            _fill(file, arrays[name].reshape(-1).view(np.uint8).data)
    return arrays


def _exactly(file: OpenFile, length: int) -> bytearray:
    """Read so many bytes, or raise an error."""
    if length > file.size:
        raise ValueError("it ends too early")
    content = bytearray(length)
    _fill(file, memoryview(content))
    return content


def _fill(file: OpenFile, place: memoryview) -> None:
    done = 0
    while done < len(place):
        count = file.raw.readinto(place[done:])
        if not count:
            raise ValueError("it ends too early")
        done += count


def parts_of(texts: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> list[bytes | memoryview]:
    """Return what a file consists of: the header, and the arrays themselves. They must be contiguous.

    Arrays with larger numbers come first, so that each begins at a multiple of the size of its numbers.
    """
    header: dict[str, object] = {"__metadata__": dict(texts)}
    place, ordered = 0, sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    for name, array in ordered:
        header[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    encoded = json.dumps(header, separators=(",", ":")).encode("ascii")
    encoded += b" " * (-len(encoded) % 8)
    if len(encoded) > MOST_HEADER:
        raise ValueError(f"save: expected a description of at most {MOST_HEADER} bytes; this has {len(encoded)}.")
    return [len(encoded).to_bytes(8, "little"), encoded, *[array.data for _, array in ordered if array.size]]
