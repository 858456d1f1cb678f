"""The standard streams of a command: closed, full, of another encoding, or a pipe that nobody reads any more.

A result reaches stdout or the command has failed. What is printed on stderr is a courtesy: if it cannot be printed,
nothing else changes.
"""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

#: A message is cut in its middle if it is longer than this.
MOST_CHARACTERS = 2000


class ReaderGone(Exception):
    """The program that read stdout has closed it, as `head` does."""


class StdoutError(OSError):
    """The result cannot be written to stdout."""


@contextlib.contextmanager
def steady_streams() -> Iterator[None]:
    """Let a command run with standard streams that are closed or cannot be written to.

    A file that is opened while a standard stream is closed would take its place, and what a library prints there would
    go into the file. So closed streams are opened on the null device first.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            with contextlib.suppress(OSError):
                os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    with contextlib.redirect_stderr(_Courtesy(sys.stderr)):
        yield


class _Courtesy(io.TextIOBase):
    """A stream that passes text on, and drops it if that fails."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        if self.stream is not None:
            try:
                self.stream.write(_encodable(text, self.stream))
                self.stream.flush()
            except (OSError, ValueError):
                _abandon(self.stream)
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.stream is not None and self.stream.isatty()

    def fileno(self) -> int:
        return io.StringIO().fileno() if self.stream is None else self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self.stream, "encoding", None) or "utf-8"


def check_stdout() -> None:
    """Raise an error if stdout is closed, so that no work is done whose result cannot be printed."""
    if sys.stdout is None:
        raise StdoutError("stdout is closed, so the result cannot be printed; redirect it to a file or to /dev/null.")


def check_stdin() -> None:
    """Raise an error if stdin is closed."""
    if sys.stdin is None:
        raise OSError("-: stdin is closed; expected a table in CSV there. Pipe one in, or name a file.")


def write_stdout(content: str | bytes) -> None:
    """Write text for people in the encoding of stdout, or bytes as they are.

    Characters that the encoding does not have are written as escapes.
    """
    check_stdout()
    stream: Any = sys.stdout
    try:
        if isinstance(content, str):
            stream.write(_encodable(content, stream))
        elif hasattr(stream, "buffer"):
            stream.flush()
            stream.buffer.write(content)
        else:
            stream.write(content.decode())
        stream.flush()
    except BrokenPipeError as error:
        _abandon(stream)
        raise ReaderGone from error
    except OSError as error:
        _abandon(stream)
        raise StdoutError(
            f"the result cannot be written to stdout ({error.strerror or error}); redirect it to another place."
        ) from error


def printable(text: str) -> str:
    """Return text whose control characters are escaped, so that it cannot command a terminal. Lines stay lines."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def one_line(text: str) -> str:
    """Return a message as a single printable line. A long one keeps its beginning and its end."""
    line = printable(" ".join(part.strip() for part in text.splitlines()).strip())
    if len(line) <= MOST_CHARACTERS:
        return line
    half = MOST_CHARACTERS // 2
    return f"{line[:half]} ... ({len(line) - 2 * half} characters left out) ... {line[-half:]}"


def _encodable(text: str, stream: Any) -> str:
    """Return text in which characters that the stream's encoding does not have are escaped."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _abandon(stream: Any) -> None:
    """Send what is still in a stream's buffer nowhere, or Python would try to write it again when it ends."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
