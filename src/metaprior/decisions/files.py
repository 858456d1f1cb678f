"""The file of a loop: two loops that share one never lose an answer.

A loop remembers the fingerprint of what it last read from its file or wrote to it. Before it writes again, it takes the
file's lock and compares: if the file has changed since, another loop has written to it, and writing would lose that
loop's answers. So the write is refused, and neither the file nor the loop changes.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metaprior.io.locks import fingerprint, locked
from metaprior.io.saving import load_state, save_state


class ChangedFileError(OSError):
    """Raised if the file of a loop has changed since the loop last read or wrote it. Load the file again."""


class LoopFiles:
    """What a loop has last read from its file or written to it; it may go on in another file, and come back."""

    def __init__(self) -> None:
        self._seen: dict[str, str | None] = {}

    def read(self, path: Path, kind: str) -> dict[str, Any]:
        """Return the content of a loop's file."""
        # A change after this line and before the next makes the next write fail, and loses nothing.
        self._seen[os.path.realpath(path)] = fingerprint(path)
        return load_state(path, kind)

    def write(self, path: Path, kind: str, content: dict[str, Any]) -> None:
        """Write a file that is new, or that nobody else has changed. Raises an error if it is neither."""
        with locked(path):
            self._expect_own(path)
            try:
                save_state(path, kind, content)
            finally:  # also if it was interrupted after it had written: the call can be repeated
                self._seen[os.path.realpath(path)] = fingerprint(path)

    def _expect_own(self, path: Path) -> None:
        found, seen = fingerprint(path), self._seen.get(os.path.realpath(path))
        if found is None or found == seen:
            return
        if seen is None:
            raise FileExistsError(f"path: {path} exists; load it to continue that loop, or give another name.")
        raise ChangedFileError(
            f"{path} has changed, probably by another loop, since this loop last read or wrote it. So nothing was "
            "written, and this loop is as it was before the call; load the file again, and repeat the call there."
        )


@contextlib.contextmanager
def continuing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn any error about the content of a file into a ValueError that names the file."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"load: the loop in {path} cannot be continued: {reason}") from error
