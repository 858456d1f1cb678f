"""Dates as numbers: days since the first one. Tables and estimators share this.

The first date is kept as text in ISO 8601. It ends in "+00:00" where the dates have a time zone: then they are
instants, and days are those of UTC.
"""

import re

import numpy as np

#: The end of a text of a date that has a time zone.
UTC = "+00:00"
#: The precision of dates: microseconds reach 290,000 years.
UNIT = "datetime64[us]"
#: How a text of a date begins.
BEGINNING = re.compile(r"-?[0-9]{4,6}-[0-9]{2}-[0-9]{2}")


def first_date(moments: np.ndarray, *, has_zone: bool) -> str:
    """Return the first of some moments (datetime64, in UTC if they have a time zone) as text."""
    text = str(np.datetime_as_string(np.min(moments.astype(UNIT)), unit="auto"))
    return text + UTC if has_zone else text


def days_since(moments: np.ndarray, first: str) -> np.ndarray:
    """Return the days from the first date to each moment; NaN for a moment that is missing (NaT)."""
    return (moments.astype(UNIT) - _moment(first)) / np.timedelta64(1, "D")


def has_zone(first: str) -> bool:
    """Return whether a text of `first_date` is that of dates with a time zone."""
    return first.endswith(UTC)


def is_date(text: object) -> bool:
    """Return whether a value is a text of `first_date`."""
    if not isinstance(text, str) or BEGINNING.match(text) is None:  # NumPy takes "now", too
        return False
    try:
        return not np.isnat(_moment(text))
    except ValueError:
        return False


def _moment(text: str) -> np.datetime64:
    return np.datetime64(text.removesuffix(UTC)).astype(UNIT)
