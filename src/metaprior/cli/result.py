"""The result of a command, and the errors that the program reports."""

from typing import Any, NamedTuple, Protocol, runtime_checkable


class Result(NamedTuple):
    """The result of a command: values for `--json`, and text for people or bytes that are printed as they are."""

    data: dict[str, Any]
    text: str | bytes


class UsageError(Exception):
    """The command was not understood. The exit code is 2."""


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
