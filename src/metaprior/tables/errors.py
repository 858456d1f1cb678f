"""The error that says what is wrong with a table, as text and as fields for programs, and what every table needs."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

#: The largest number of columns.
MAX_COLUMNS = 100_000


class TableError(ValueError):
    """A table cannot be used as it is.

    Where a single cell is at fault, `row`, `column` and `value` describe it. Rows are counted from 1, without the
    header.
    """

    def __init__(self, message: str, *, row: int | None = None, column: str | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.row, self.column, self.value = row, column, value

    @classmethod
    def at(cls, index: int, column: str, what: str, value: Any = None) -> "TableError":
        """Return an error whose message begins with the row and column of a cell; `index` counts from 0."""
        return cls(f"row {index + 1}, column {column!r}: {what}", row=index + 1, column=column, value=value)

    def fields(self) -> dict[str, Any]:
        """Return the row, column and value, as far as they are known."""
        found = {"row": self.row, "column": self.column, "value": self.value}
        return {name: value for name, value in found.items() if value is not None}


def check_names(source: str, names: Sequence[str]) -> None:
    """Raise an error if a table has too many columns, or several of one name."""
    if len(names) > MAX_COLUMNS:
        raise TableError(f"{source}: expected at most {MAX_COLUMNS:,} columns; it has {len(names):,}.")
    twice = sorted(name for name, number in Counter(names).items() if number > 1)
    if twice:
        shown = ", ".join(map(repr, twice[:10])) + (", ..." if len(twice) > 10 else "")
        raise TableError(f"{source} has more than one column called {shown}; give each its own name.")
