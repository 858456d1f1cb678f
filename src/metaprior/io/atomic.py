"""Atomic writing: if the process is killed or the disk is full, either the old or the new file is left, whole."""

import contextlib
import os
import tempfile
from pathlib import Path


def write_atomically(target: Path, content: bytes) -> None:
    """Write to a temporary file beside the target, flush it to disk and rename it."""
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise OSError(error.errno, f"save: cannot write in the folder {target.parent} ({error.strerror})") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    with contextlib.suppress(OSError):  # not every system can flush a folder
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
