"""One writer at a time: a lock beside a file, and a fingerprint that tells whether the file has changed.

The lock is the operating system's own (`flock`, or `msvcrt.locking` on Windows). It excludes other threads as well as
other processes, and it ends with the process that holds it, however that ends. So a lock file that a killed process has
left blocks nobody; the next writer uses it and removes it. Where a file system has no locks, there is none to wait for,
and the fingerprint alone tells of other writers.
"""

import contextlib
import errno
import hashlib
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

#: How long to wait for another writer, and from one attempt to the next, in seconds. Writing takes milliseconds.
PATIENCE, PAUSE = 60.0, 0.002
#: The errors of file systems that have no locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
#: What is read of a file at once, in bytes.
_BLOCK = 1 << 20


@contextlib.contextmanager
def locked(target: Path, patience: float = PATIENCE) -> Iterator[None]:
    """Wait until no other thread or process has a file's lock, and hold it."""
    lock = _lock_beside(target)
    with _acquired(lock, target, patience):
        try:
            yield
        finally:
            if sys.platform != "win32":  # Windows does not remove an open file
                with contextlib.suppress(OSError):
                    os.unlink(lock)  # still held: whoever waits for it sees that it is gone, and makes a new one


def fingerprint(path: Path) -> str | None:
    """Return a digest of the header of a file that `saving` wrote, or None if there is no file.

    The header contains the checksum of everything else, so another content has another fingerprint. The same content
    may have another one when it is written again. Cost: the header, not the arrays.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return "not a regular file"
    except FileNotFoundError:
        return None
    with open(path, "rb") as file:
        size = file.read(8)
        left, digest = int.from_bytes(size, "little"), hashlib.sha256(size)
        while block := file.read(min(left, _BLOCK)):
            digest.update(block)
            left -= len(block)
    return digest.hexdigest()


def _lock_beside(target: Path) -> Path:
    """Return the path of a file's lock. It is the same for all names of the file, and no longer than a name may be."""
    real = Path(os.path.realpath(target))
    return real.parent / f".metaprior-{hashlib.sha256(os.fsencode(real.name)).hexdigest()[:16]}.lock"


def _acquired(lock: Path, target: Path, patience: float) -> IO[bytes]:
    """Return the open lock file, which is locked until it is closed."""
    started = time.monotonic()
    while True:
        try:
            file = open(lock, "ab")  # noqa: SIM115  (the caller closes it)
        except OSError as error:
            raise OSError(
                error.errno, f"save: cannot write in the folder {target.parent} ({error.strerror})"
            ) from error
        if _try_to_lock(file) and _is_at(lock, file):
            return file
        file.close()
        if time.monotonic() - started > patience:
            raise TimeoutError(
                f"save: another process has been writing {target} for {patience:g} seconds, so nothing was written; "
                "repeat the call when it has finished."
            )
        time.sleep(PAUSE)


def _try_to_lock(file: IO[bytes]) -> bool:
    """Lock a file, or return False if another holds it."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return True
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def _is_at(path: Path, file: IO[bytes]) -> bool:
    """Return whether an open file is still the one at a path: its last holder may have removed it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
