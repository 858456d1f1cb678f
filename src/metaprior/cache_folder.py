"""The folder in which compiled programs are kept, and whether it can be used.

Programs that are read from the folder run with the rights of the user, so a folder that others can write to is not
used. A folder that is made here is open to its owner alone. Where there is no folder, or it cannot be used, programs
are compiled anew in every process; a warning says so once, and how to choose another folder.
"""

import os
import stat
import tempfile
from pathlib import Path

from metaprior.user_warnings import warn_user

#: Bytes that are written to see whether there is room for programs.
PROBE = 1 << 16

_WARNED: set[str] = set()
_WRITTEN: set[Path] = set()


class NoProgramCache(UserWarning):
    """Compiled programs are not kept on disk."""


def cache_folder() -> Path | None:
    """Return the folder that METAPRIOR_CACHE names, or one in the user's cache; None if it is off or there is none."""
    named = os.environ.get("METAPRIOR_CACHE")
    if named is not None:
        return None if named.lower() in ("off", "0", "") else Path(named)
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = base if base.is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # no HOME, and a user whom the system does not know
        _warn("this user has no home folder")
        return None
    return base / "metaprior" / "programs"


def usable_cache_folder() -> Path | None:
    """Return the folder of the cache, made if need be; None, with a warning, if it cannot be trusted or written to."""
    folder = cache_folder()
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        why_not = _distrust(folder.stat())
        if why_not is None and folder not in _WRITTEN:
            _write_and_remove(folder)
            _WRITTEN.add(folder)
    except OSError as error:
        why_not = f"cannot be written to ({error.strerror or error})"
    if why_not is not None:
        _warn(f"{folder} {why_not}")
        return None
    return folder


def _distrust(found: os.stat_result) -> str | None:
    """Return why programs of this folder must not be run; None if only this user, or the system's, can write there."""
    if not hasattr(os, "geteuid"):
        return None
    if found.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written to by others (chmod go-w would end that)"
    return None


def _write_and_remove(folder: Path) -> None:
    """Raise an OSError if the folder is read-only or its disk is full."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        probe.write(bytes(PROBE))


def _warn(reason: str) -> None:
    """Warn once for each reason."""
    if reason in _WARNED:
        return
    _WARNED.add(reason)
    warn_user(
        f"compiled programs are not kept on disk, so that every process compiles them anew: {reason}. "
        "METAPRIOR_CACHE=/some/folder chooses a folder that only you can write to; METAPRIOR_CACHE=off ends this "
        "warning.",
        NoProgramCache,
    )
