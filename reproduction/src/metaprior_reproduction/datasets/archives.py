"""Zip and tar archives, read without trusting them.

No member may leave the folder, be a link, or make the whole larger than METAPRIOR_MAX_UNPACKED. An archive is read as a
stream, so memory is needed for a piece of it, and for the headers of one member.
"""

import functools
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from metaprior.io.unpacking import (
    PIECE,
    UnpackingError,
    damage_told,
    form_of,
    open_unpacked,
    open_zip,
    open_zip_member,
    too_large,
    unpacking_limit,
)
from metaprior_reproduction.datasets.data import DataError

#: The largest number of members, and the largest lengths of a name and of its parts in bytes.
MAX_MEMBERS, LONGEST_NAME, LONGEST_PART = 50_000, 1000, 255
#: The bytes that the headers of one member of a tar archive may have, and how many settings may hold for all members.
HEADERS, MAX_SETTINGS = 2**16, 100


def members(archive: str | os.PathLike[str]) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the name and the content of every file in a zip or tar archive.

    Raises
    ------
    DataError
        The file is not an archive or is damaged, a name is absolute or contains "..", a member is neither a file nor a
        folder (but a link or a device), there are too many members, or the contents exceed METAPRIOR_MAX_UNPACKED
        bytes (an environment variable; 512 MiB if it is not set).
    """
    with unpacking_told(Path(archive)):
        for name, pieces in _files(Path(archive)):
            yield name, b"".join(pieces)


def unpack(archive: str | os.PathLike[str], folder: str | os.PathLike[str]) -> Path:
    """Unpack an archive into a new folder: all of it, or nothing if any member is refused (see `members`).

    Parameters
    ----------
    archive : str or path
        A zip or tar file, as `fetch` returns it.
    folder : str or path
        The folder to create; it must not exist.
    """
    source, target = Path(archive), Path(folder)
    if target.exists() or target.is_symlink():
        raise FileExistsError(f"unpack: {target} exists; give another folder.")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch, unpacking_told(source):
        inside = Path(scratch) / "inside"
        inside.mkdir()
        for name, pieces in _files(source):
            place = inside.joinpath(*name.parts)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as file:
                    file.writelines(pieces)
            except (FileExistsError, NotADirectoryError) as error:
                raise _refused(source, str(name), "clashes with another member") from error
        os.rename(inside, target)
    return target


@contextmanager
def unpacking_told(path: Path) -> Iterator[None]:
    """Turn what readers raise on an archive into an error of the data."""
    try:
        with damage_told(path):
            yield
    except (UnpackingError, tarfile.TarError) as error:
        raise DataError(str(error) if isinstance(error, UnpackingError) else f"{path} is damaged ({error}).") from error


def _files(path: Path) -> Iterator[tuple[PurePosixPath, Iterator[bytes]]]:
    """Yield the name and the content, in pieces, of every file; the content has to be read before the next name."""
    with path.open("rb") as file:
        form = form_of(file.read(8))
    yield from _of_zip(path) if form == "zip" else _of_tar(path)


def _of_zip(path: Path) -> Iterator[tuple[PurePosixPath, Iterator[bytes]]]:
    with open_zip(path) as archive:
        infos = archive.infolist()
        _check_number(path, len(infos))
        _check_size(path, sum(info.file_size for info in infos))
        for info in infos:
            name = _checked_name(path, info.filename)
            kind = stat.S_IFMT(info.external_attr >> 16)  # 0 if the archive was not made on Unix
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refused(path, info.filename, "is neither a file nor a folder")
            if not info.is_dir():
                with open_zip_member(path, archive, info) as member:
                    yield name, iter(functools.partial(member.read, PIECE), b"")


# --- tar --------------------------------------------------------------------------------


class _TarBytes:
    """The bytes of a tar archive, read forward only, of which tarfile gets no more than headers at once.

    It reads a header whole, as long as the archive says, and holds the headers that follow each other all at once.
    """

    def __init__(self, path: Path, stream: IO[bytes]) -> None:
        self._path, self._stream, self._place, self.left = path, stream, 0, HEADERS

    def tell(self) -> int:
        return self._place

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self.left:
            raise UnpackingError(f"{self._path}: a member has headers of more than {HEADERS:,} bytes, or of none.")
        found = self._stream.read(size)
        self._place, self.left = self._place + len(found), self.left - len(found)
        return found

    def seek(self, place: int) -> int:
        if place < self._place:
            raise UnpackingError(f"{self._path}: a member stands before its header.")
        while self._place < place and (found := self._stream.read(min(place - self._place, PIECE))):
            self._place += len(found)
        return self._place

    def content(self, info: tarfile.TarInfo) -> Iterator[bytes]:
        """Yield the content of a member in pieces."""
        self.seek(info.offset_data)
        end = info.offset_data + info.size
        while self._place < end:
            found = self._stream.read(min(end - self._place, PIECE))
            if not found:
                raise EOFError("it ends in the middle of a member")
            self._place += len(found)
            yield found


def _of_tar(path: Path) -> Iterator[tuple[PurePosixPath, Iterator[bytes]]]:
    with open_unpacked(path) as stream:
        data, total = _TarBytes(path, stream), 0
        for number, info in enumerate(_tar_infos(path, data), 1):
            name = _checked_name(path, info.name)
            if not (info.isreg() or info.isdir()) or info.issparse() or info.size < 0:
                raise _refused(path, info.name, "is neither a file nor a folder")
            total += info.size
            _check_number(path, number)
            _check_size(path, total)
            if info.isreg():
                yield name, data.content(info)


def _tar_infos(path: Path, data: _TarBytes) -> Iterator[tarfile.TarInfo]:
    """Yield the headers of the members, none of which is kept."""
    try:
        archive = tarfile.TarFile(fileobj=data)  # type: ignore[arg-type]
    except tarfile.ReadError as error:
        raise UnpackingError(f"{path}: expected a zip or tar archive; it is neither. Get another copy.") from error
    while (info := archive.next()) is not None:
        if len(archive.pax_headers) > MAX_SETTINGS:
            raise _refused(path, info.name, f"stands after more than {MAX_SETTINGS} settings for all members")
        yield info
        archive.members.clear()  # type: ignore[attr-defined]
        data.left = HEADERS


# --- what is refused --------------------------------------------------------------------


def _checked_name(path: Path, name: str) -> PurePosixPath:
    """Return the name of a member if it stays inside the folder on every system."""
    windows = PureWindowsPath(name)  # knows both slashes, drives and shares
    if windows.anchor or ".." in windows.parts or "\0" in name:
        raise _refused(path, name, "does not stay inside the folder it is unpacked in")
    if len(os.fsencode(name)) > LONGEST_NAME or any(len(os.fsencode(part)) > LONGEST_PART for part in windows.parts):
        raise _refused(path, name, "has too long a name")
    return PurePosixPath(*windows.parts)


def _check_size(path: Path, size: int) -> None:
    if size > (limit := unpacking_limit()):
        raise too_large(str(path), limit)


def _check_number(path: Path, number: int) -> None:
    if number > MAX_MEMBERS:
        raise UnpackingError(f"{path}: expected at most {MAX_MEMBERS:,} members; it has more. Do not use this archive.")


def _refused(path: Path, name: str, why: str) -> UnpackingError:
    shown = name if len(name) <= 100 else f"{name[:100]}..."
    return UnpackingError(f"{path}: the member {shown!r} {why}; nothing is unpacked. Do not use this archive.")
