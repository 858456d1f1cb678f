"""Tables in, tables out: files, columns as numbers, and (in `model.py`) an estimator that remembers its columns."""

from metaprior.tables.errors import TableError
from metaprior.tables.files import CSVForm, read_table, write_table
from metaprior.tables.schema import Schema, learned_schema

__all__ = ["CSVForm", "Schema", "TableError", "learned_schema", "read_table", "write_table"]
