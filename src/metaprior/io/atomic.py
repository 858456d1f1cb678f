"""Atomic writing: if the process is killed or the disk is full, either the old or the new file is left, whole.

The content goes to a temporary file beside the target, which is flushed to disk and then takes the target's name. A
process holds a lock on its temporary file for as long as it lives. So the next writer in the folder can tell the files
that killed processes left, and removes them. A symbolic link is followed: the file that it points to is replaced.
"""

import contextlib
import errno
import importlib.util
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

#: What a file is made of: bytes, or a sequence of parts that are written one after the other.
Content: TypeAlias = bytes | Iterable[bytes | memoryview]
#: Not every system has file locks. Without them no temporary file of another process is removed.
HAS_LOCKS = importlib.util.find_spec("fcntl") is not None

#: The names of temporary files. They do not contain the name of the target, which may be as long as a name can be.
TEMPORARY = re.compile(r"\.metaprior-[0-9a-f]{16}\.tmp")
#: What a file system answers that has no hard links.
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EACCES)
#: What a path may name besides a regular file.
OTHER_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


class Temporary(NamedTuple):
    """A temporary file that this process has open and locked."""

    path: Path
    handle: int


def write_atomically(target: Path, content: Content, *, overwrite: bool = True) -> None:
    """Write a file, or raise an error and leave what was there.

    An existing file keeps its permissions. Without `overwrite` an existing file is an error, and of several processes
    that write the same name at the same time exactly one succeeds. Only regular files are replaced.
    """
    real = Path(os.path.realpath(target))
    old = _regular_file(target, real)
    if old is not None and not overwrite:
        raise _exists(target)
    _remove_abandoned(real.parent)
    with _temporary_beside(real, old) as own:
        _write_all(own.handle, content)
        if overwrite:
            os.replace(own.path, real)
        else:
            _give_new_name(own.path, target, real)
    with contextlib.suppress(OSError):  # not every system can flush a folder
        folder = os.open(real.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def kind_of_file(mode: int) -> str:
    """Return what a path names that is not a regular file, in words."""
    return OTHER_KINDS.get(stat.S_IFMT(mode), "no regular file")


def _regular_file(target: Path, real: Path) -> os.stat_result | None:
    """Return the status of the file to replace, or None if there is none; raise an error if it is not a file."""
    try:
        status = os.stat(real)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise OSError(error.errno, f"save: cannot write {target} ({error.strerror})") from error
    if not stat.S_ISREG(status.st_mode):
        number = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
        what = kind_of_file(status.st_mode)
        raise OSError(number, f"save: expected a file or a new name; {target} is {what} and is not replaced")
    return status


def _exists(target: Path) -> FileExistsError:
    return FileExistsError(f"save: {target} exists; give another name, or pass overwrite=True.")


@contextlib.contextmanager
def _temporary_beside(real: Path, old: os.stat_result | None) -> Iterator[Temporary]:
    """Yield a new temporary file with the permissions of the old file, and remove it if it still has its name."""
    own = _new_temporary(real.parent)
    try:
        if old is not None:
            with contextlib.suppress(OSError):  # only a privileged process may keep another owner
                os.chown(own.handle, old.st_uid, old.st_gid)
            os.chmod(own.handle, stat.S_IMODE(old.st_mode))
        yield own
    finally:
        with contextlib.suppress(OSError):
            os.unlink(own.path)
        os.close(own.handle)


def _new_temporary(folder: Path) -> Temporary:
    """Create and lock a temporary file. The system gives it the permissions of a new file."""
    while True:
        path = folder / f".metaprior-{secrets.token_hex(8)}.tmp"
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except OSError as error:
            raise OSError(error.errno, f"save: cannot write in the folder {folder} ({error.strerror})") from error
        with contextlib.suppress(OSError):  # not every file system has locks
            _lock(handle)
        if _is_at(path, handle):
            return Temporary(path, handle)
        os.close(handle)  # another process took it for an abandoned file before it was locked


def _lock(handle: int, *, wait: bool = True) -> None:
    """Lock an open file for this process, until it is closed or the process ends."""
    if HAS_LOCKS:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _is_at(path: Path, handle: int) -> bool:
    """Return whether an open file still has this name."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle))
    except FileNotFoundError:
        return False


def _write_all(handle: int, content: Content) -> None:
    """Write all parts and flush them to disk."""
    with os.fdopen(handle, "wb", closefd=False) as file:
        for part in (content,) if isinstance(content, bytes) else content:
            file.write(part)
        file.flush()
        os.fsync(handle)


def _give_new_name(own: Path, target: Path, real: Path) -> None:
    """Give a finished file a name that nothing else has, or raise an error. Only one of several callers succeeds."""
    try:
        os.link(own, real)
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        # without links an empty file takes the name first; a kill right now would leave that
        try:
            os.close(os.open(real, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        except FileExistsError:
            raise _exists(target) from None
        os.replace(own, real)


def _remove_abandoned(folder: Path) -> None:
    """Remove the temporary files of processes that were killed: those that no process has locked."""
    if not HAS_LOCKS:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if TEMPORARY.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):
                _remove_if_unlocked(folder / name)


def _remove_if_unlocked(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        _lock(handle, wait=False)  # raises an error while its process lives
        if stat.S_ISREG(os.fstat(handle).st_mode) and _is_at(path, handle):
            os.unlink(path)
    finally:
        os.close(handle)
