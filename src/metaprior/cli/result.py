"""The result of a command, and the errors that the program reports."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable


class Result(NamedTuple):
    """The result of a command: values for `--json`, and text for people or bytes that are printed as they are."""

    data: dict[str, Any]
    text: str | bytes


class UsageError(Exception):
    """The command was not understood. The exit code is 2."""


class ListedError(ValueError):
    """A problem with several parts. Each is printed on a line of its own, after the line of the message."""

    def __init__(self, message: str, parts: Sequence[str]) -> None:
        super().__init__("\n".join([message, *parts]))
        self.message, self.parts = message, tuple(parts)


@runtime_checkable
class FieldedError(Protocol):
    """An error with more fields for JSON than its message."""

    def fields(self) -> dict[str, Any]:
        """Return the fields that JSON shows beside the type and the message."""


def counted(number: int, what: str) -> str:
    """Return a number with its noun: 1 row, 2 rows."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def aligned(rows: list[tuple[str, str]], indent: str = "  ") -> str:
    """Return pairs as lines in two aligned columns."""
    width = max((len(first) for first, _ in rows), default=0)
    return "\n".join(f"{indent}{first:<{width}}  {second}" for first, second in rows)
