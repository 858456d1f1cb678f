"""The column to predict: which task it asks for, and its values as numbers or classes."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from metaprior.tables.columns import FLAGS, flags, missing, numbers, texts
from metaprior.tables.errors import TableError
from metaprior.tables.files import pandas

if TYPE_CHECKING:
    import pandas as pd

REGRESSION, CLASSIFICATION = TASKS = ("regression", "classification")
#: Whole numbers are classes where there are at most so many, each in at least so many rows on average; two always are.
MOST_NUMBERS, ROWS_A_NUMBER = 10, 10
#: More different texts than this are no classes.
MOST_CLASSES = 100


class Target(NamedTuple):
    """The column to predict.

    `kind` is what its cells hold: "number", "whole" (numbers that name classes), "flag" or "text".
    """

    name: str
    task: str
    kind: str

    @classmethod
    def learned(cls, series: "pd.Series", task: str | None = None) -> "Target":
        """Look at the values and decide, unless the task is given.

        Text and true or false are classes. So are whole numbers, where there are two of them, or at most
        `MOST_NUMBERS` with `ROWS_A_NUMBER` rows each on average. Any other number is a number.
        """
        name, kind = str(series.name), _kind(series)
        gaps = missing(series)
        if gaps.any():
            row = int(np.argmax(gaps))
            raise TableError.at(row, name, "the value to predict is missing; fill it in or leave the row out.")
        if task is None:
            task = CLASSIFICATION if kind != "number" else _task_of_numbers(numbers(series))
        if task == CLASSIFICATION and kind == "number":
            kind = "whole"
        made = cls(name, task, "number" if task == REGRESSION else kind)
        _check_distinct(made, made.encoded(series))
        return made

    def encoded(self, series: "pd.Series") -> np.ndarray:
        """Return the values: numbers, or labels of classes."""
        gaps = missing(series)
        if gaps.any():
            raise TableError.at(int(np.argmax(gaps)), self.name, "the value to compare with is missing.")
        if self.kind == "text":
            return texts(series).astype(str)
        if self.kind == "flag":
            return np.array(["false", "true"])[flags(series).astype(int)]
        values = numbers(series)
        return _whole(self.name, values) if self.kind == "whole" else values


def _kind(series: "pd.Series") -> str:
    pd = pandas()
    if isinstance(series.dtype, pd.CategoricalDtype):
        return "text"
    if pd.api.types.is_bool_dtype(series.dtype):
        return "flag"
    if pd.api.types.is_numeric_dtype(series.dtype):
        return "number"
    found = {text for text in texts(series) if text is not None}
    return "flag" if found and {text.lower() for text in found} <= set(FLAGS) else "text"


def _task_of_numbers(values: np.ndarray) -> str:
    distinct = np.unique(values)
    few = len(distinct) == 2 or (len(distinct) <= MOST_NUMBERS and len(values) >= ROWS_A_NUMBER * len(distinct))
    return CLASSIFICATION if few and np.all(distinct == np.floor(distinct)) else REGRESSION


def _whole(name: str, values: np.ndarray) -> np.ndarray:
    wrong = np.where(values != np.floor(values))[0]
    if len(wrong):
        value = float(values[wrong[0]])
        raise TableError.at(wrong[0], name, f"expected a class, a whole number or a text; got {value!r}.", value)
    return values.astype(np.int64)


def _check_distinct(target: Target, values: np.ndarray) -> None:
    distinct = np.unique(values)
    if len(distinct) == 1:
        raise TableError(
            f"column {target.name!r}: every value to predict is {distinct[0]}; expected at least two different ones.",
            column=target.name,
        )
    if target.task == CLASSIFICATION and len(distinct) > MOST_CLASSES:
        raise TableError(
            f"column {target.name!r}: {len(distinct)} different values are too many for classes (at most "
            f"{MOST_CLASSES}); predict another column, or, if these are numbers, see that each is written as one.",
            column=target.name,
        )
