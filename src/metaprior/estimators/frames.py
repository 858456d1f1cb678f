"""Inputs whose columns are dates: data frames (pandas, polars) and arrays of datetime64.

A column of dates is read as days since its first date in the training data, as the command line reads it. The first
dates are kept as `date_origins_`: one text per column, and None for columns of numbers.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from metaprior.dates import days_since, first_date, has_zone, is_date
from metaprior.user_warnings import warn_user

#: One text per column; None where a column has numbers. None alone: no column has dates.
Origins = tuple[str | None, ...] | None


class DateColumn(NamedTuple):
    """A column of dates: what it is called, its moments (in UTC if it has a time zone), and its place."""

    label: str
    moments: np.ndarray
    has_zone: bool
    place: int


def learned_dates(X: Any) -> tuple[Any, Origins]:
    """Return the training inputs with days in place of dates, and the first dates; tell of each such column."""
    X = _of_known_kind(X)
    columns = date_columns(X)
    if not columns:
        return X, None
    origins: list[str | None] = [None] * _num_columns(X)
    for column in columns:
        _refuse_gaps(column)
        origins[column.place] = first = first_date(column.moments, has_zone=column.has_zone)
        warn_user(f"{column.label} holds dates: it is read as days since {first}, so lengths and periods are in days.")
    return _in_days(X, columns, origins), tuple(origins)


def known_dates(X: Any, origins: Origins, names: Sequence[str] | None) -> Any:
    """Return inputs to predict at with days in place of dates, counted from the first dates of the fit.

    An array of numbers has days already. Frames with other names are returned as they are: they are refused for these.
    """
    X = _of_known_kind(X)
    columns = date_columns(X)
    other_names = names is not None and hasattr(X, "columns") and list(X.columns) != list(names)
    if other_names or (origins is None and not columns):
        return X
    known = origins or (None,) * _num_columns(X)
    if len(known) != _num_columns(X):
        return X
    for column in columns:
        _check_known(column, known[column.place])
    found = {column.place for column in columns}
    absent = [place for place, first in enumerate(known) if first is not None and place not in found]
    if absent and hasattr(X, "columns"):
        raise ValueError(f"X: expected dates in column {X.columns[absent[0]]!r}, as in the fit; it has none.")
    return _in_days(X, columns, known) if columns else X


def check_origins(origins: Any, num_columns: int) -> None:
    """Raise an error unless restored first dates are such as a fit leaves."""
    fits = isinstance(origins, tuple) and len(origins) == num_columns and any(first is not None for first in origins)
    if not fits or not all(first is None or is_date(first) for first in origins):
        raise ValueError(f"date_origins_: expected the first date, or None, of each of {num_columns} columns")


def date_columns(X: Any) -> list[DateColumn]:
    """Return the columns of a frame, or of an array of datetime64, that hold dates; refuse durations."""
    if isinstance(X, np.ndarray):
        _refuse_durations([] if X.dtype.kind != "m" else ["X"])
        if X.dtype.kind != "M" or X.ndim != 2:
            return []
        return [DateColumn(f"column {place}", column, False, place) for place, column in enumerate(X.T)]
    if _is_polars(X):
        return _of_polars(X)
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not (hasattr(X, "iloc") and hasattr(dtypes, "items")):
        return []
    kinds = [(name, getattr(dtype, "kind", "O")) for name, dtype in dtypes.items()]
    _refuse_durations([name for name, kind in kinds if kind == "m"])
    places = [place for place, (_, kind) in enumerate(kinds) if kind == "M"]
    return [_of_pandas(X.iloc[:, place], kinds[place][0], place) for place in places]


def columns_without_numbers(X: Any) -> list[Any]:
    """Return the names of a frame's columns that hold no numbers."""
    if _is_polars(X):
        return [name for name, dtype in X.schema.items() if not (dtype.is_numeric() or str(dtype) == "Boolean")]
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(dtypes, "items"):
        return []
    return [name for name, dtype in dtypes.items() if getattr(dtype, "kind", "O") not in "biuf"]


def _of_known_kind(X: Any) -> Any:
    """Return a frame of another library than pandas and polars as one of pandas, if it can be one."""
    is_known = isinstance(X, np.ndarray) or hasattr(X, "iloc") or _is_polars(X)
    return X if is_known or not hasattr(X, "to_pandas") else X.to_pandas()


def _is_polars(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "polars" and hasattr(X, "schema")


def _of_polars(X: Any) -> list[DateColumn]:
    kinds = {name: str(dtype).partition("(")[0] for name, dtype in X.schema.items()}
    _refuse_durations([name for name, kind in kinds.items() if kind == "Duration"])
    return [
        DateColumn(
            f"column {name!r}",
            X.get_column(name).to_numpy().astype("datetime64[us]"),
            getattr(X.schema[name], "time_zone", None) is not None,
            place,
        )
        for place, (name, kind) in enumerate(kinds.items())
        if kind in ("Date", "Datetime")
    ]


def _of_pandas(series: Any, name: Any, place: int) -> DateColumn:
    zone = series.dt.tz is not None
    moments = series.dt.tz_convert(None) if zone else series
    return DateColumn(f"column {name!r}", moments.to_numpy(dtype="datetime64[us]", na_value=None), zone, place)


def _num_columns(X: Any) -> int:
    return int(X.shape[1])


def _in_days(X: Any, columns: Sequence[DateColumn], origins: Sequence[str | None]) -> Any:
    """Return inputs with days in place of dates."""
    days = {each.place: days_since(each.moments, str(origins[each.place])) for each in columns}
    if isinstance(X, np.ndarray):
        return np.column_stack([days[place] for place in range(X.shape[1])])
    if _is_polars(X):
        names = list(X.columns)
        return X.with_columns([type(X.get_column(names[place]))(names[place], days[place]) for place in days])
    changed = X.copy(deep=False)
    for place, values in days.items():
        changed.isetitem(place, values)
    return changed


def _refuse_gaps(column: DateColumn) -> None:
    gaps = np.isnat(column.moments)
    if np.any(gaps):
        raise ValueError(
            f"X: {column.label} has no date (NaT) in {int(np.sum(gaps))} rows, the first of them row "
            f"{int(np.argmax(gaps))}. Fill them in, or leave these rows out."
        )


def _refuse_durations(names: list[Any]) -> None:
    if names:
        raise ValueError(
            f"X: expected numbers or dates; {names} hold durations. Divide them by a unit, for instance by "
            "numpy.timedelta64(1, 'D') for days."
        )


def _check_known(column: DateColumn, first: str | None) -> None:
    """Raise an error unless a column of dates is like that of the fit."""
    if first is None:
        raise ValueError(f"X: expected numbers in {column.label}, as in the fit; got dates.")
    if has_zone(first) != column.has_zone:
        expected, got = ("with", "without") if has_zone(first) else ("without", "with")
        raise ValueError(
            f"X: expected dates {expected} a time zone in {column.label}, as in the fit; got dates {got} one. Use "
            "tz_localize or tz_convert of pandas (replace_time_zone or convert_time_zone of polars)."
        )
    _refuse_gaps(column)
