"""Zip and tar archives, read without trusting them: no member may leave the folder or be a link."""

import itertools
import lzma
import os
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from metaprior_reproduction.datasets.data import DataError

#: An archive that claims to hold more is refused.
MAX_BYTES = 2**30
#: What Python's readers raise on damaged archives.
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, NotImplementedError)


def members(archive: str | os.PathLike[str]) -> Iterator[tuple[PurePosixPath, bytes]]:
    """Yield the name and the content of every file in a zip or tar archive.

    Raises
    ------
    DataError
        The file is not an archive or is damaged, a name is absolute or contains "..", a member is neither a file nor a
        folder (but a link or a device), or the contents exceed `MAX_BYTES`.
    """
    path = Path(archive)
    try:
        if zipfile.is_zipfile(path):
            yield from _of_zip(path)
        elif tarfile.is_tarfile(path):
            yield from _of_tar(path)
        else:
            raise DataError(f"{path}: expected a zip or tar archive; it is neither. Get another copy.")
    except _DAMAGE as error:
        raise DataError(f"{path}: the archive is damaged ({error}). Get another copy.") from error


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
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
        inside = Path(scratch) / "inside"
        inside.mkdir()
        for name, content in members(source):
            place = inside.joinpath(*name.parts)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as file:
                    file.write(content)
            except (FileExistsError, NotADirectoryError) as error:
                raise _refused(source, str(name), "clashes with another member") from error
        os.rename(inside, target)
    return target


def _of_zip(path: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    with zipfile.ZipFile(path) as archive:
        _check_size(path, sum(info.file_size for info in archive.infolist()))
        for info in archive.infolist():
            name = _checked_name(path, info.filename)
            kind = stat.S_IFMT(info.external_attr >> 16)  # 0 if the archive was not made on Unix
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refused(path, info.filename, "is neither a file nor a folder")
            if info.flag_bits & 1:
                raise _refused(path, info.filename, "is encrypted")
            if not info.is_dir():
                yield name, archive.read(info)


def _of_tar(path: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
    with tarfile.open(path) as archive:
        sizes = itertools.accumulate(info.size for info in archive)
        for size in sizes:  # stops at the first header over the limit: headers alone can be a bomb
            _check_size(path, size)
        for info in archive:
            name = _checked_name(path, info.name)
            if not (info.isreg() or info.isdir()):
                raise _refused(path, info.name, "is neither a file nor a folder")
            content = archive.extractfile(info)
            if content is not None:
                yield name, content.read()


def _checked_name(path: Path, name: str) -> PurePosixPath:
    """Return the name of a member if it stays inside the folder on every system."""
    windows = PureWindowsPath(name)  # knows both slashes, drives and shares
    if windows.anchor or ".." in windows.parts or "\0" in name:
        raise _refused(path, name, "does not stay inside the folder it is unpacked in")
    return PurePosixPath(*windows.parts)


def _check_size(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        raise DataError(f"{path}: expected an archive of at most {MAX_BYTES:,} bytes unpacked; it claims {size:,}.")


def _refused(path: Path, name: str, why: str) -> DataError:
    return DataError(f"{path}: the member {name!r} {why}; nothing is unpacked. Do not use this archive.")
