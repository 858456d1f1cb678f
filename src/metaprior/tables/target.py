"""The column to predict: regression or classification, and its values as numbers or class labels."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from metaprior.tables.columns import FLAGS, flags, missing, numbers, texts
from metaprior.tables.errors import TableError
from metaprior.tables.files import pandas

if TYPE_CHECKING:
    import pandas as pd

REGRESSION, CLASSIFICATION = TASKS = ("regression", "classification")
#: Whole numbers are classes if there are two of them, or at most this many with this many rows each on average.
MOST_NUMBERS, ROWS_A_NUMBER = 10, 10
#: Larger whole numbers are not exact as floating-point numbers.
LARGEST_CLASS = 10**15
#: A column with more different texts than this is not a column of classes.
MOST_CLASSES = 100


class Target(NamedTuple):
    """The column to predict.

    `kind` says what its cells contain: "number", "whole" (whole numbers that name classes), "flag" or "text".
    """

    name: str
    task: str
    kind: str

    @classmethod
    def learned(cls, series: "pd.Series", task: str | None = None) -> "Target":
        """Decide on the task from the values, unless it is given.

        Texts, and true and false, are classes. So are whole numbers if there are two of them, or at most
        `MOST_NUMBERS` with `ROWS_A_NUMBER` rows each on average. Any other numbers make a regression. Texts most of
        which are numbers may be either, so they are an error.
        """
        name, kind = str(series.name), _kind(series)
        gaps = missing(series)
        if gaps.any():
            row = int(np.argmax(gaps))
            raise TableError.at(row, name, "the value to predict is missing; fill it in or leave the row out.")
        if task is None:
            if kind == "text":
                _check_texts(name, texts(series))
            task = CLASSIFICATION if kind != "number" else _task_of_numbers(numbers(series))
        if task == CLASSIFICATION and kind == "number":
            kind = "whole"
        made = cls(name, task, "number" if task == REGRESSION else kind)
        _check_distinct(made, made.encoded(series))
        return made

    def check(self, is_classified: bool) -> None:
        """Raise an error unless this is the target of a classifier, or of a regressor."""
        kinds = ("whole", "flag", "text") if is_classified else ("number",)
        task = CLASSIFICATION if is_classified else REGRESSION
        if self.task != task or self.kind not in kinds:
            raise ValueError(f"Target: expected the task {task!r} and one of the kinds {kinds}; got {self!r}.")

    def encoded(self, series: "pd.Series") -> np.ndarray:
        """Return the values as numbers, or as class labels."""
        gaps = missing(series)
        if gaps.any():
            raise TableError.at(
                int(np.argmax(gaps)),
                self.name,
                "the value to compare with is missing; fill it in or leave the row out.",
            )
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


def _check_texts(name: str, found: np.ndarray) -> None:
    """Raise an error if texts are not clearly classes: most are numbers, but not all of them are whole ones."""
    pd = pandas()
    values = pd.to_numeric(pd.Series(found, dtype=object), errors="coerce").to_numpy(np.float64)
    finite = np.isfinite(values)
    if finite.mean() <= 0.5:
        return
    wrong = np.where(~finite)[0] if not finite.all() else np.where(values != np.floor(values))[0]
    if len(wrong):
        value = found[wrong[0]]
        what = f"most values to predict are numbers, but this one was read as text: {value!r}; correct it (or"
        advice = "--decimal), or say what the column is with --task regression or --task classification."
        raise TableError.at(wrong[0], name, f"{what} {advice}", value)


def _whole(name: str, values: np.ndarray) -> np.ndarray:
    wrong = np.where((values != np.floor(values)) | (np.abs(values) > LARGEST_CLASS))[0]
    if len(wrong):
        value = float(values[wrong[0]])
        exact = "" if value != np.floor(value) else " (numbers of more than 15 digits are not exact)"
        what = f"expected a class, which is a whole number or a text; got {value!r}{exact}."
        raise TableError.at(wrong[0], name, what, value)
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
            f"{MOST_CLASSES}); predict another column, or, if these are numbers, check how each is written.",
            column=target.name,
        )
