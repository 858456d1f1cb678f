"""Compressed files, read as a stream and only up to a limit, because a small file can unpack to gigabytes.

The form of a file is told by its first bytes. The limit is `DEFAULT_LIMIT`, or what METAPRIOR_MAX_UNPACKED says. It
holds for everything that this project unpacks: compressed tables, and the archives of data sets. Memory is needed for
one piece of the stream, so a file that holds too much is refused without being held.
"""

import bz2
import errno
import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

#: The environment variable that sets another limit, in bytes.
VARIABLE = "METAPRIOR_MAX_UNPACKED"
#: How many bytes a file may unpack to, unless the variable says another number.
DEFAULT_LIMIT = 2**29
#: Bytes that are read or unpacked at once.
PIECE = 2**18
#: The largest window of an xz file (`xz -9` needs half of it), and the largest directory of a zip file.
XZ_MEMORY, ZIP_DIRECTORY = 2**27, 2**23
#: Ways to store a member of a zip file that need little memory, and the names of all forms by their first bytes.
ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
BEGINNINGS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x28\xb5\x2f\xfd": "zstandard",
}
#: What Python's readers raise on damaged files. An OSError may also come from the disk: its number says so.
DAMAGE: tuple[type[Exception], ...] = (
    *(zlib.error, lzma.LZMAError, struct.error, zipfile.BadZipFile, EOFError, OSError),
    *(ValueError, LookupError, ArithmeticError, NotImplementedError, RuntimeError),
)


class UnpackingError(ValueError):
    """A compressed file is damaged, or of a form that is not read."""


class TooLargeError(UnpackingError):
    """A file unpacks to more than the limit."""


def unpacking_limit() -> int:
    """Return how many bytes a file may unpack to."""
    text = os.environ.get(VARIABLE, "").strip() or str(DEFAULT_LIMIT)
    if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text) > 0):
        raise ValueError(f"{VARIABLE}: expected a number of bytes, such as {DEFAULT_LIMIT}; got {text[:40]!r}.")
    return int(text)


def too_large(what: str, limit: int) -> TooLargeError:
    """Return the error for something that holds more than the limit."""
    return TooLargeError(
        f"{what}: expected at most {limit:,} bytes unpacked; it holds more. If you trust it, raise the limit: set the "
        f"environment variable {VARIABLE} to a larger number of bytes, such as {4 * limit}."
    )


def form_of(beginning: bytes) -> str | None:
    """Return in which form a file with these first bytes is compressed; None if it is not."""
    return next((form for first, form in BEGINNINGS.items() if beginning.startswith(first)), None)


def open_unpacked(path: Path, limit: int | None = None) -> io.BufferedReader:
    """Open a file, compressed or not, as a stream of the bytes in it.

    Reading raises `TooLargeError` beyond the limit, and `UnpackingError` if the file is damaged. A zip file has to hold
    a single member.
    """
    limit = unpacking_limit() if limit is None else limit
    file = path.open("rb")
    try:
        form = form_of(file.read(8))
        file.seek(0)
        if form == "zip":
            pieces = _pieces_of_single_member(path, file)
        elif form in _DECOMPRESSORS:
            pieces = _unpacked_pieces(file, _DECOMPRESSORS[form])
        elif form is None:
            pieces = iter(lambda: file.read(PIECE), b"")
        else:
            raise UnpackingError(f"{path} is compressed with {form}, which is not read; unpack it first.")
    except BaseException:
        file.close()
        raise
    return io.BufferedReader(_Unpacked(path, file, pieces, limit), PIECE)


class _Unpacked(io.RawIOBase):
    """The pieces of a file as a stream, counted against the limit."""

    def __init__(self, path: Path, file: IO[bytes], pieces: Iterator[bytes], limit: int) -> None:
        self._path, self._file, self._pieces, self._limit = path, file, pieces, limit
        self._piece, self._total = memoryview(b""), 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the next piece; 0 at the end."""
        if not self._piece:
            self._piece = memoryview(self._next_piece())
            self._total += len(self._piece)
            if self._total > self._limit:
                raise too_large(str(self._path), self._limit)
        number = min(len(buffer), len(self._piece))
        buffer[:number], self._piece = self._piece[:number], self._piece[number:]
        return number

    def _next_piece(self) -> bytes:
        with damage_told(self._path):
            return next(self._pieces, b"")

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()


@contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """Turn what Python's readers raise on a damaged file into an error that says so."""
    try:
        yield
    except UnpackingError:
        raise
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise UnpackingError(f"{path} is damaged ({str(error)[:200]}); get another copy.") from error


# --- gzip, bzip2, xz --------------------------------------------------------------------


class _Decompressor(Protocol):
    """What the decompressors of bzip2 and xz have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """A member of a gzip file, with the interface of the decompressors of bzip2 and xz."""

    def __init__(self) -> None:
        self._inner, self._rest = zlib.decompressobj(31), b""

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._rest

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._inner.decompress(self._rest + data, max_length)
        self._rest = self._inner.unconsumed_tail
        return found


_DECOMPRESSORS: dict[str | None, Callable[[], _Decompressor]] = {
    "gzip": _Gzip,
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY),
}


def _unpacked_pieces(file: IO[bytes], new: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """Yield the content of the streams that a file consists of, one after the other; zeros between them are padding."""
    rest = file.read(PIECE)
    while rest:
        stream = new()
        while not stream.eof:
            data = rest or (file.read(PIECE) if stream.needs_input else b"")
            if not data and stream.needs_input:
                raise EOFError("it ends in the middle of the compressed data")
            rest = b""
            if found := stream.decompress(data, PIECE):
                yield found
        rest = stream.unused_data.lstrip(b"\0")
        while not rest and (more := file.read(PIECE)):
            rest = more.lstrip(b"\0")


# --- zip --------------------------------------------------------------------------------


class _SmallReads(io.BufferedReader):
    """A file of which little is read at once: zipfile reads the directory of an archive whole, whatever its size."""

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = os.fstat(self.fileno()).st_size - self.tell() if size is None or size < 0 else size
        if wanted > ZIP_DIRECTORY:
            raise UnpackingError(f"{self.name}: its directory has more than {ZIP_DIRECTORY:,} bytes; unpack it first.")
        return super().read(size)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip file whose directory is not too large to be read into memory."""
    with _SmallReads(io.FileIO(path)) as file, zipfile.ZipFile(file) as archive:
        yield archive


def open_zip_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    """Open a member of a zip file, unless unpacking it needs a password or much memory."""
    if info.flag_bits & 1:
        raise UnpackingError(f"{path}: the member {info.filename!r} is encrypted; unpack it first.")
    if info.compress_type not in ZIP_METHODS:
        raise UnpackingError(
            f"{path}: expected members that are stored, deflated or bzip2; {info.filename!r} is compressed by method "
            f"{info.compress_type}. Unpack it first."
        )
    return archive.open(info)


def _pieces_of_single_member(path: Path, file: IO[bytes]) -> Iterator[bytes]:
    file.close()
    with open_zip(path) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        if len(infos) != 1:
            raise UnpackingError(f"{path}: expected a zip file of a single file; it holds {len(infos)}.")
        with open_zip_member(path, archive, infos[0]) as member:
            yield from iter(lambda: member.read(PIECE), b"")
