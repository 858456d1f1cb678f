"""The schema of a table: which columns a model reads, what each contains, and which one it predicts."""

import datetime
import decimal
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metaprior.names import nearest
from metaprior.tables.columns import FILLS, FLAGS, Category, Column, Date, Flag, Number, missing, numbers, shown, texts
from metaprior.tables.errors import TableError
from metaprior.tables.files import pandas
from metaprior.tables.target import Target
from metaprior.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

#: A column with more different texts than this is a category only if that is asked for.
MOST_CATEGORIES = 50
#: Dates that are recognised without being named.
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
#: The types that a cell may have.
KNOWN = (str, bool, int, float, decimal.Decimal, datetime.date, np.generic)


class Schema(NamedTuple):
    """The columns that are read, the column that is predicted, and the columns that are left out."""

    columns: tuple[Column, ...]
    target: Target
    ignored: tuple[str, ...]

    def features(self) -> list[str]:
        """Return the names of the features that a row becomes."""
        return [feature for column in self.columns for feature in column.features()]

    def places(self, name: str) -> list[int]:
        """Return the positions of a column among the features."""
        start = 0
        for column in self.columns:
            width = len(column.features())
            if column.name == name:
                return list(range(start, start + width))
            start += width
        raise TableError(
            f"there is no input column {name!r}{nearest(name, [c.name for c in self.columns])}.", column=name
        )

    def text_columns(self) -> list[str]:
        """Return the columns of a CSV file that must be read as text."""
        kept = [column.name for column in self.columns if isinstance(column, Category | Date)]
        return [*kept, self.target.name] if self.target.kind == "text" else kept

    def encoded(self, frame: "pd.DataFrame", *, allow_unseen: bool = False) -> np.ndarray:
        """Return a table as numbers, of shape [N, features]. Columns are found by name, in any order.

        Parameters
        ----------
        frame : DataFrame
        allow_unseen : bool
            Whether a category may have a value that was not in the training table.
        """
        absent = [column.name for column in self.columns if column.name not in frame.columns]
        if absent:
            hints = "".join(nearest(name, list(frame.columns)) for name in absent[:1])
            raise TableError(
                f"the table has no column {shown(tuple(absent))}{hints}; the model needs "
                f"{shown(tuple(column.name for column in self.columns))}.",
                column=absent[0],
            )
        return encoded_columns(self.columns, frame, allow_unseen)

    def extra(self, frame: "pd.DataFrame", expected: Sequence[str] = ()) -> list[str]:
        """Return the columns of a table that the model does not know."""
        known = {*(column.name for column in self.columns), self.target.name, *self.ignored, *expected}
        return [name for name in frame.columns if name not in known]


def encoded_columns(columns: Sequence[Column], frame: "pd.DataFrame", allow_unseen: bool) -> np.ndarray:
    """Return columns as numbers, of shape [N, features]; tell of missing values that are filled in."""
    counts = {c.name: int(missing(frame[c.name]).sum()) for c in columns if c.fill is not None}
    told = [f"{count} in {name!r}" for name, count in counts.items() if count]
    if told:
        warn_user(f"missing values are filled in: {', '.join(told)}.")
    return np.concatenate([c.encoded(frame[c.name], allow_unseen) for c in columns], axis=1)


def learned_schema(
    frame: "pd.DataFrame",
    target: str,
    *,
    task: str | None = None,
    ignore: Sequence[str] = (),
    categorical: Sequence[str] = (),
    dates: Mapping[str, str | None] | None = None,
    impute: str | None = None,
) -> Schema:
    """Learn the schema of a training table: decide what every column contains.

    Parameters
    ----------
    frame : DataFrame
    target : str
        The column to predict.
    task : {"regression", "classification"}, default=None
        None decides by the values, as `Target.learned` describes.
    ignore, categorical : sequence of str
        Columns to leave out, and columns that are categories whatever they contain.
    dates : mapping from str to str or None
        Columns that are dates, each with its format (as for `strptime`). None is ISO 8601.
    impute : {"mean", "median", "most-frequent"}, default=None
        How missing values are filled. Categories always take their most frequent value. None raises an error.
    """
    dates = dates or {}
    check_known(frame, (target, *ignore, *categorical, *dates), impute)
    learned_target = Target.learned(frame[target], task)
    names = [name for name in frame.columns if name != target and name not in ignore]
    columns, constant = learned_columns(frame, names, categorical, dates, impute)
    if not columns:
        raise TableError(f"no column is left to predict {target!r} from; expected at least one that varies.")
    return Schema(columns, learned_target, (*ignore, *constant))


def check_known(frame: "pd.DataFrame", names: Sequence[str], impute: str | None) -> None:
    """Raise an error unless the table has the columns that are named, and missing values are filled in a known way."""
    for name in names:
        if name not in frame.columns:
            known = list(frame.columns)
            hint = nearest(name, known) or f"; it has {shown(tuple(known)) or 'no column with a name'}"
            raise TableError(f"the table has no column {name!r}{hint}.", column=name)
    if impute is not None and impute not in FILLS:
        raise ValueError(f"impute: expected one of {list(FILLS)}; got {impute!r}.")


def learned_columns(
    frame: "pd.DataFrame",
    names: Sequence[str],
    categorical: Sequence[str],
    dates: Mapping[str, str | None],
    impute: str | None,
) -> tuple[tuple[Column, ...], tuple[str, ...]]:
    """Learn what columns contain; return those that vary, and the names of those that do not."""
    constant = {name: None for name in names if _is_constant(frame[name])}  # as a list, but quick to look in
    if constant:
        told = shown(tuple(constant))
        warn_user(f"columns with the same value in all rows are left out: {told}.")
    return tuple(_learned(frame[n], categorical, dates, impute) for n in names if n not in constant), tuple(constant)


def _is_constant(series: "pd.Series") -> bool:
    """Return whether all cells are equal; raise an error if they are empty or of an unknown type."""
    name, filled = str(series.name), series[~missing(series)]
    if not len(filled):
        raise TableError(f"column {name!r} is empty; leave it out with --ignore {name}.", column=name)
    example = filled.iloc[0]
    if not isinstance(example, KNOWN) or isinstance(example, datetime.timedelta | np.timedelta64):
        raise TableError(
            f"column {name!r} contains values such as {example!r}; expected numbers, texts, true or false, or dates.",
            column=name,
        )
    return len(filled) == len(series) and filled.nunique() == 1


def _learned(
    series: "pd.Series", categorical: Sequence[str], dates: Mapping[str, str | None], impute: str | None
) -> Column:
    """Learn one column."""
    pd, name = pandas(), str(series.name)
    kind: Any = _kind_of_text
    if name in dates:
        return _complete(Date.learned(series, impute, dates[name]), series)
    if name in categorical or isinstance(series.dtype, pd.CategoricalDtype):
        kind = Category
    elif pd.api.types.is_bool_dtype(series.dtype):
        kind = Flag
    elif pd.api.types.is_numeric_dtype(series.dtype):
        kind = Number
    elif pd.api.types.is_datetime64_any_dtype(series.dtype):
        kind = Date
    else:
        kind = _kind_of_text(series)
    return _complete(kind.learned(series, impute), series)


def _complete(column: Column, series: "pd.Series") -> Column:
    """Return the column; raise an error if the training table has missing values that nothing fills."""
    column.encoded(series, False)
    return column


def _kind_of_text(series: "pd.Series") -> type[Column]:
    pd, name = pandas(), str(series.name)
    found = [text for text in texts(series) if text is not None]
    distinct = set(found)
    if {text.lower() for text in distinct} <= set(FLAGS):
        return Flag
    numeric = pd.to_numeric(pd.Series(found, dtype=object), errors="coerce").notna().mean()
    if numeric > 0.5:
        numbers(series)  # raises an error at the first cell that is not a number
        return Number
    if all(ISO_DATE.fullmatch(text) for text in distinct):
        warn_user(
            f"column {name!r} is read as dates, in days since the first; --categorical {name} would read categories."
        )
        return Date
    if len(distinct) > MOST_CATEGORIES:
        raise TableError(
            f"column {name!r} has {len(distinct)} different texts in {len(found)} rows, such as {found[0]!r}; leave it "
            f"out (--ignore {name}), or say what it is (--date {name}:FORMAT, --categorical {name}).",
            column=name,
        )
    return Category
