"""Read and write tables, turn their columns into numbers, and (in `model.py`) keep an estimator with its columns."""

from metaprior.tables.errors import TableError
from metaprior.tables.files import CSVForm, read_table, write_table
from metaprior.tables.schema import Schema, learned_schema

__all__ = ["CSVForm", "Schema", "TableError", "learned_schema", "read_table", "write_table"]
