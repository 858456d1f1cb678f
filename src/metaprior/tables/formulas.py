"""Texts in a CSV file that a spreadsheet would run as formulas.

A spreadsheet takes a cell of a CSV file for a formula if it begins with one of a few characters, and a formula can
fetch addresses and start programs. Such texts come from the user's own table. They are written as they came, so that
the file reads back the same, unless an apostrophe before them is asked for. Numbers stay numbers.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from metaprior.tables.columns import shown
from metaprior.tables.errors import TableError
from metaprior.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

#: The characters with which formulas begin; some spreadsheets know the wide forms too.
BEGINNINGS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def is_formula(value: Any) -> bool:
    """Return whether a spreadsheet would run a cell as a formula. Texts that are numbers are none."""
    if not isinstance(value, str) or not value.startswith(BEGINNINGS):
        return False
    with suppress(ValueError):
        float(value)
        return False
    return True


def for_csv(frame: "pd.DataFrame", *, escape: bool) -> "pd.DataFrame":
    """Return a table that is written to a CSV file, with an apostrophe before every formula if `escape`.

    Otherwise a warning names the columns with formulas. A carriage return inside of a text is an error, because it
    would end the row when the file is read.
    """
    texts = {name: [value if isinstance(value, str) else "" for value in frame[name]] for name in frame.columns}
    _check_ends(texts)
    found = [name for name, column in texts.items() if is_formula(name) or any(map(is_formula, column))]
    if not found:
        return frame
    if escape:
        return frame.assign(**{name: frame[name].map(_escaped) for name in found}).rename(columns=_escaped)
    warn_user(
        f"a spreadsheet would run texts of {shown(tuple(found))} as formulas, because they begin with =, +, - or @; "
        "before you open the file in one, write it with --escape-formulas."
    )
    return frame


def _escaped(value: Any) -> Any:
    return f"'{value}" if is_formula(value) else value


def _check_ends(texts: dict[str, list[str]]) -> None:
    for name, column in texts.items():
        for row, text in enumerate((name, *column)):
            if "\r" in text:
                where = f"row {row}, column {name!r}" if row else f"the name of column {name!r}"
                raise TableError(
                    f"{where}: a carriage return inside of a text cannot be written to CSV; leave the column out, or "
                    "write Parquet (--out FILE.parquet).",
                    column=name,
                )
