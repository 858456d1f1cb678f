"""Read and write tables, turn their columns into numbers, and (in `model.py`) keep an estimator with its columns."""

from typing import TYPE_CHECKING, Any

from metaprior.tables.errors import TableError
from metaprior.tables.files import CSVForm, read_table, write_table
from metaprior.tables.schema import Schema, learned_schema

if TYPE_CHECKING:
    from metaprior.tables.encoder import TableEncoder

__all__ = ["CSVForm", "Schema", "TableEncoder", "TableError", "learned_schema", "read_table", "write_table"]


def __getattr__(name: str) -> Any:
    if name == "TableEncoder":  # imports scikit-learn, which reading a table does not need
        from metaprior.tables.encoder import TableEncoder

        return TableEncoder
    raise AttributeError(f"module 'metaprior.tables' has no attribute {name!r}; it has {__all__}.")
