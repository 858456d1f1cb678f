"""The kinds of columns: what each learns from the training table, and how it encodes another table as numbers.

A number stays a number. True and false become 1 and 0. A category becomes one column of 0 and 1 for every value that
was seen. A date becomes days since the first date of the training table. If imputation was asked for, each column also
learns what fills its missing values.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metaprior.dates import days_since, is_date
from metaprior.tables.errors import TableError
from metaprior.tables.files import pandas

if TYPE_CHECKING:
    import pandas as pd

#: Lower-case texts that mean true or false.
FLAGS = {"true": 1.0, "false": 0.0}
#: How many values of a category an error message shows.
SHOWN = 10


# --- reading cells --------------------------------------------------------------------


def missing(series: "pd.Series") -> np.ndarray:
    """Return a mask of the empty cells."""
    return series.isna().to_numpy(dtype=bool)


def texts(series: "pd.Series") -> np.ndarray:
    """Return the cells as strings, and None for empty cells."""
    gaps = missing(series)
    found = np.empty(len(series), object)
    found[~gaps] = [_text(value) for value in series[~gaps]]
    return found


def _text(value: Any) -> str:
    """Return a value as it would be written in a CSV file: 2.0 as 2."""
    whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if whole else str(value).strip()


def numbers(series: "pd.Series") -> np.ndarray:
    """Return the cells as finite numbers, and NaN for empty cells."""
    pd = pandas()
    if pd.api.types.is_numeric_dtype(series.dtype):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = pd.to_numeric(pd.Series(texts(series)), errors="coerce").to_numpy(np.float64)
    wrong = np.where(~missing(series) & ~np.isfinite(values))[0]
    if len(wrong):
        value = _text(series.iloc[wrong[0]])
        raise TableError.at(
            wrong[0], str(series.name), f"expected a finite number; got {value!r}{_hint(value)}.", value
        )
    return values


def _hint(value: str) -> str:
    """Return a hint about what a text that is not a number might be."""
    if value.replace(",", ".", 1).replace(".", "", 1).lstrip("-").isdigit() and "," in value:
        return " (it is a number with --decimal ,)"
    return " (if it stands for a missing value, name it with --missing)" if len(value) <= 4 else ""


def flags(series: "pd.Series") -> np.ndarray:
    """Return 1 for true, 0 for false, and NaN for empty cells."""
    known = {**FLAGS, "1": 1.0, "0": 0.0}
    found = texts(series)
    values = np.array([np.nan if text is None else known.get(text.lower(), np.inf) for text in found], np.float64)
    wrong = np.where(np.isinf(values))[0]
    if len(wrong):
        value = found[wrong[0]]
        raise TableError.at(wrong[0], str(series.name), f"expected true or false; got {value!r}.", value)
    return values


def moments(series: "pd.Series", form: str | None) -> "pd.Series":
    """Return the cells as timestamps in UTC. Without a format they must be written as in ISO 8601."""
    pd = pandas()
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        return pd.to_datetime(series, utc=True).reset_index(drop=True)
    found = texts(series)
    try:
        values = pd.to_datetime(pd.Series(found, dtype=object), format=form or "ISO8601", utc=True, errors="coerce")
    except (ValueError, re.error) as error:
        name = str(series.name)
        what = f"{form!r} is not a format of dates ({error}); expected, for instance, %d.%m.%Y."
        raise TableError(f"column {name!r}: {what}", column=name) from error
    wrong = np.where(~missing(series) & missing(values))[0]
    if len(wrong):
        name, value = str(series.name), found[wrong[0]]
        expected = f"a date written as {form if form else '2024-01-31 or 2024-01-31T12:30'}"
        advice = "" if form else f"; say how dates are written, for instance --date '{name}:%d.%m.%Y'"
        raise TableError.at(wrong[0], name, f"expected {expected}; got {value!r}{advice}.", value)
    return values


# --- missing values -------------------------------------------------------------------


def most_frequent(values: np.ndarray) -> Any:
    """Return the most frequent value; of several, the first in sorted order."""
    found, counts = np.unique(values, return_counts=True)
    return found[np.argmax(counts)]


#: The ways to fill missing numbers.
FILLS: dict[str, Callable[[np.ndarray], Any]] = {"mean": np.mean, "median": np.median, "most-frequent": most_frequent}


def learned_fill(values: np.ndarray, impute: str | None) -> float | None:
    """Return the number that fills missing values, or None if imputation was not asked for."""
    return None if impute is None else float(FILLS[impute](values[~np.isnan(values)]))


def filled(name: str, values: np.ndarray, fill: float | None) -> np.ndarray:
    """Return the numbers with missing values filled; raise an error at the first one if nothing fills it."""
    gaps = np.isnan(values)
    if not gaps.any():
        return values
    if fill is None:
        raise gap_error(name, gaps)
    return np.where(gaps, fill, values)


def gap_error(name: str, gaps: np.ndarray) -> TableError:
    """Return the error for a column with missing values."""
    others = f" ({int(gaps.sum())} values of this column are missing)" if gaps.sum() > 1 else ""
    return TableError.at(
        int(np.argmax(gaps)),
        name,
        f"the value is missing{others}; fill it in, leave the row out, or fit with --impute median.",
    )


# --- kinds of columns -----------------------------------------------------------------


class Number(NamedTuple):
    """A column of numbers, with their range in the training table."""

    name: str
    low: float
    high: float
    fill: float | None

    @classmethod
    def learned(cls, series: "pd.Series", impute: str | None) -> "Number":
        """Learn the range, and what fills missing values."""
        values = numbers(series)
        return cls(str(series.name), float(np.nanmin(values)), float(np.nanmax(values)), learned_fill(values, impute))

    def features(self) -> list[str]:
        """Return the names of the features that the column becomes."""
        return [self.name]

    def encoded(self, series: "pd.Series", allow_unseen: bool) -> np.ndarray:
        """Return the numbers, of shape [N, 1]."""
        return filled(self.name, numbers(series), self.fill)[:, None]

    def described(self) -> str:
        """Return a short description of what was learned."""
        return f"number from {self.low:g} to {self.high:g}"


class Flag(NamedTuple):
    """A column of true and false."""

    name: str
    fill: float | None

    @classmethod
    def learned(cls, series: "pd.Series", impute: str | None) -> "Flag":
        """Learn what fills missing values: the more frequent of the two."""
        return cls(str(series.name), learned_fill(flags(series), impute and "most-frequent"))

    def features(self) -> list[str]:
        """Return the names of the features that the column becomes."""
        return [self.name]

    def encoded(self, series: "pd.Series", allow_unseen: bool) -> np.ndarray:
        """Return 1 for true and 0 for false, of shape [N, 1]."""
        return filled(self.name, flags(series), self.fill)[:, None]

    def described(self) -> str:
        """Return a short description of what was learned."""
        return "true or false"


class Category(NamedTuple):
    """A column of categories."""

    name: str
    values: tuple[str, ...]
    fill: str | None

    @classmethod
    def learned(cls, series: "pd.Series", impute: str | None) -> "Category":
        """Learn the values, and what fills missing ones: the most frequent."""
        found = texts(series)[~missing(series)]
        return cls(str(series.name), tuple(sorted(set(found))), str(most_frequent(found)) if impute else None)

    def features(self) -> list[str]:
        """Return the names of the features that the column becomes."""
        return [f"{self.name}={value}" for value in self.values]

    def encoded(self, series: "pd.Series", allow_unseen: bool) -> np.ndarray:
        """Return 0 and 1, of shape [N, values]; a value that was not seen becomes all 0, if that is allowed."""
        gaps, found = missing(series), texts(series)
        if gaps.any() and self.fill is None:
            raise gap_error(self.name, gaps)
        found[gaps] = self.fill
        encoded = np.array(found[:, None] == np.array(self.values, object), np.float64)
        unseen = np.where(encoded.sum(axis=1) == 0)[0]
        if len(unseen) and not allow_unseen:
            value, known = found[unseen[0]], shown(self.values)
            what = f"the category {value!r} was not in the training table, which has {known}; correct it, or"
            raise TableError.at(unseen[0], self.name, f"{what} treat it as none of them with --allow-unseen.", value)
        return encoded

    def described(self) -> str:
        """Return a short description of what was learned."""
        return f"category: {shown(self.values)}"


class Date(NamedTuple):
    """A column of dates, encoded as days since the first date of the training table."""

    name: str
    form: str | None
    first: str
    last: str
    fill: float | None

    @classmethod
    def learned(cls, series: "pd.Series", impute: str | None, form: str | None = None) -> "Date":
        """Learn the first date, and what fills missing values."""
        found = moments(series, form)
        made = cls(str(series.name), form, found.min().isoformat(), found.max().isoformat(), None)
        return made._replace(fill=learned_fill(made._days(series), impute))

    def check(self) -> None:
        """Raise an error unless the first date is one."""
        if not is_date(self.first):
            raise ValueError(f"Date: expected the first date of column {self.name!r} as text; got {self.first!r}.")

    def features(self) -> list[str]:
        """Return the names of the features that the column becomes."""
        return [self.name]

    def encoded(self, series: "pd.Series", allow_unseen: bool) -> np.ndarray:
        """Return the days since the first date, of shape [N, 1]."""
        return filled(self.name, self._days(series), self.fill)[:, None]

    def _days(self, series: "pd.Series") -> np.ndarray:
        return days_since(moments(series, self.form).dt.tz_convert(None).to_numpy(), self.first)

    def described(self) -> str:
        """Return a short description of what was learned."""
        first, last = (text.removesuffix("+00:00").removesuffix("T00:00:00") for text in (self.first, self.last))
        return f"date from {first} to {last}"


Column = Number | Flag | Category | Date


def shown(values: tuple[str, ...]) -> str:
    """Return the values as a list for a message, cut if it is long."""
    more = f", ... ({len(values)} in all)" if len(values) > SHOWN else ""
    return ", ".join(repr(value) for value in values[:SHOWN]) + more
