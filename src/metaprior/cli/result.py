"""What a command gives back, and how it says that it was not understood."""

from typing import Any, NamedTuple, Protocol, runtime_checkable


class Result(NamedTuple):
    """What a command found: plain things for `--json`, and text for people."""

    data: dict[str, Any]
    text: str


class UsageError(Exception):
    """The command was not understood: exit code 2."""


@runtime_checkable
class FieldedError(Protocol):
    """An error that has more to say in JSON than its message."""

    def fields(self) -> dict[str, Any]:
        """Return what JSON shows beside the type and the message."""


def counted(number: int, what: str) -> str:
    """Return a number of things: 1 row, 2 rows."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def aligned(rows: list[tuple[str, str]], indent: str = "  ") -> str:
    """Return pairs as lines, the second parts under one another."""
    width = max((len(first) for first, _ in rows), default=0)
    return "\n".join(f"{indent}{first:<{width}}  {second}" for first, second in rows)
