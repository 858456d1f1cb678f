"""Rows that are held out: a part of them at random, or the last ones by a date or a number.

`0.2` holds out a fifth of the rows at random, and of every class about as large a part. `last:0.2` holds out the fifth
with the latest dates, and `last:0.2:COLUMN` that with the largest values of another column, so that what is scored lies
after all that was fitted.
"""

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

from metaprior.cli.result import UsageError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from metaprior.tables import Schema

FORM = "a part of the rows between 0 and 1, such as 0.2, or last:0.2 for those with the latest dates"


class Holdout(NamedTuple):
    """How rows are held out. `column` is what orders them, or None for the only column of dates."""

    fraction: float
    last: bool
    column: str | None

    def described(self, schema: "Schema") -> str:
        """Return how the rows are chosen, in words."""
        return f"the last ones by {self.order(schema)!r}" if self.last else "chosen at random"

    def order(self, schema: "Schema") -> str:
        """Return the column by which the last rows are the last."""
        from metaprior.tables.columns import Date

        if self.column is not None:
            schema.places(self.column)  # raises an error if there is no such column
            return self.column
        dates = [column.name for column in schema.columns if isinstance(column, Date)]
        if len(dates) != 1:
            found = f"columns of dates are {', '.join(map(repr, dates))}" if dates else "no column has dates"
            raise UsageError(
                f"--holdout: expected last:{self.fraction:g}:COLUMN, with the column that orders the rows; {found}"
            )
        return dates[0]

    def split(
        self, frame: "pd.DataFrame", schema: "Schema", y: "np.ndarray", seed: int
    ) -> "tuple[np.ndarray, np.ndarray]":
        """Return the positions of the rows to fit and of those held out, both in the order of the table."""
        import numpy as np

        if self.last:
            is_held = self._latest(frame, schema)
        else:
            is_held = self._at_random(y, seed, schema.target.task == "classification")
        fitted, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
        if len(held) < 1 or len(fitted) < 2:
            raise UsageError(
                f"--holdout: expected at least 1 row to hold out and 2 to fit; of {len(y)} rows, a part of "
                f"{self.fraction:g} leaves {len(held)} and {len(fitted)}"
            )
        if schema.target.task == "classification":
            check_classes(y, (fitted, held))
        return fitted, held

    def _latest(self, frame: "pd.DataFrame", schema: "Schema") -> "np.ndarray":
        """Return a mask of the rows from a moment on, so that rows of one moment stay together."""
        import numpy as np

        name = self.order(schema)
        column = next(column for column in schema.columns if column.name == name)
        values = column.encoded(frame[name], False)
        if values.shape[1] != 1:
            raise UsageError(f"--holdout: expected a column of dates or numbers to order the rows; {name!r} has texts")
        first = np.sort(values[:, 0])[len(values) - _share(self.fraction, len(values))]
        return values[:, 0] >= first

    def _at_random(self, y: "np.ndarray", seed: int, is_classified: bool) -> "np.ndarray":
        """Return a mask of rows; of a class at least one row stays to be fitted."""
        import numpy as np

        rng = np.random.default_rng(seed)
        is_held = np.zeros(len(y), bool)
        groups: list[Any] = [np.flatnonzero(y == label) for label in np.unique(y)] if is_classified else []
        for rows in groups or [np.arange(len(y))]:
            is_held[rng.permutation(rows)[: _share(self.fraction, len(rows))]] = True
        return is_held


def holdout_of(text: str) -> Holdout:
    """Return what FRACTION, last:FRACTION or last:FRACTION:COLUMN says; for argparse."""
    kind, colon, rest = text.partition(":")
    is_last = bool(colon) and kind == "last"
    number, _, column = rest.partition(":") if is_last else (text, "", "")
    try:
        fraction = float(number)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction < 1:
        raise argparse.ArgumentTypeError(f"expected {FORM}; got {text!r}")
    return Holdout(fraction, is_last, column or None)


def check_classes(labels: "np.ndarray", split: "tuple[np.ndarray, np.ndarray]") -> None:
    """Raise an error if a row that is held out has a class that no fitted row has."""
    import numpy as np

    fitted, held = split
    unseen = np.setdiff1d(labels[held], labels[fitted])
    if len(unseen):
        raise ValueError(
            f"the class {unseen[0].item()!r} is only among the rows that are held out, so no model can know it; hold "
            "out other rows, or leave rare classes out."
        )


def _share(fraction: float, num_rows: int) -> int:
    """Return how many of some rows are held out: the nearest number, at least one of two or more, and never all."""
    return min(max(1, round(fraction * num_rows)), num_rows - 1)
