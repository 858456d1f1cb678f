"""What is wrong with a table, in words and as fields for programs."""

from typing import Any


class TableError(ValueError):
    """A table is not as it must be; where one cell is at fault, its row, column and value are known.

    Rows are counted from 1, the header not among them.
    """

    def __init__(self, message: str, *, row: int | None = None, column: str | None = None, value: Any = None) -> None:
        super().__init__(message)
        self.row, self.column, self.value = row, column, value

    @classmethod
    def at(cls, index: int, column: str, what: str, value: Any = None) -> "TableError":
        """Return an error that begins with its place; `index` counts from 0."""
        return cls(f"row {index + 1}, column {column!r}: {what}", row=index + 1, column=column, value=value)

    def fields(self) -> dict[str, Any]:
        """Return what is known of the place."""
        found = {"row": self.row, "column": self.column, "value": self.value}
        return {name: value for name, value in found.items() if value is not None}
