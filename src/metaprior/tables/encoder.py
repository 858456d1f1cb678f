"""The encoding of the command line as a transformer of scikit-learn."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from metaprior.tables.columns import Column
from metaprior.tables.errors import TableError
from metaprior.tables.files import pandas
from metaprior.tables.schema import check_known, encoded_columns, learned_columns

if TYPE_CHECKING:
    import pandas as pd

#: Options of the command line in messages, and the parameters that they are here.
OPTIONS = (
    (re.compile(r"--impute (\w+)"), r"impute='\1'"),
    (re.compile(r"--allow-unseen"), "allow_unseen=True"),
    (re.compile(r"--date '?([^\s:]+):(FORMAT|%[^\s']+)'?"), r"dates={'\1': '\2'}"),
    (re.compile(r"--(ignore|categorical) ([^\s,;)]+)"), r"\1=['\2']"),
    (re.compile(r" \(it is a number with --decimal ,\)| \(if it stands for a missing value, .*? --missing\)"), ""),
)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table as numbers, as `metaprior fit` does.

    Numbers stay numbers. True and false become 1 and 0. A text or categorical column becomes one column of 0 and 1 for
    each of its values, and a column of dates becomes days since its first date. Columns that have the same value in all
    rows are left out, with a warning.

    Parameters
    ----------
    ignore, categorical : sequence of str, default=()
        Columns to leave out, and columns that are categories whatever they contain.
    dates : mapping from str to str or None, default=None
        Columns of texts that are dates, each with its format (as for `strptime`); None is ISO 8601. Texts such as
        2024-01-31 and columns with a type of dates are recognised.
    impute : {"mean", "median", "most-frequent"}, default=None
        How missing values are filled. Categories take their most frequent value. None raises an error.
    allow_unseen : bool, default=False
        Whether a category may have a value that was not in the training table. It becomes 0 in all columns.

    Attributes
    ----------
    columns_ : tuple
        What each column that is read contains: its range, its values or its first date.
    left_out_ : tuple of str
        Columns that are not read: those to ignore, and those with one value.

    Examples
    --------
    >>> import pandas as pd
    >>> from metaprior.tables import TableEncoder
    >>> table = pd.DataFrame({"city": ["Bern", "Rome", "Bern"], "height": [540.0, 21.0, 545.0]})
    >>> TableEncoder().set_output(transform="pandas").fit_transform(table)
       city=Bern  city=Rome  height
    0        1.0        0.0   540.0
    1        0.0        1.0    21.0
    2        1.0        0.0   545.0
    """

    columns_: tuple[Column, ...]
    left_out_: tuple[str, ...]

    def __init__(
        self,
        *,
        ignore: Sequence[str] = (),
        categorical: Sequence[str] = (),
        dates: Mapping[str, str | None] | None = None,
        impute: str | None = None,
        allow_unseen: bool = False,
    ) -> None:
        self.ignore = ignore
        self.categorical = categorical
        self.dates = dates
        self.impute = impute
        self.allow_unseen = allow_unseen

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the columns contain.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_columns)
            Columns of an array are called x0, x1, ...
        y : None
            Is not looked at.
        """
        frame, dates = self._frame(X, reset=True), dict(self.dates or {})
        try:
            check_known(frame, (*self.ignore, *self.categorical, *dates), self.impute)
            names = [name for name in frame.columns if name not in self.ignore]
            columns, constant = learned_columns(frame, names, self.categorical, dates, self.impute)
        except TableError as error:
            raise in_python(error) from error
        if not columns:
            raise TableError(
                f"TableEncoder: expected at least one column that varies; got {frame.shape[1]} columns with n_samples="
                f"{len(frame)}, and none of them does."
            )
        self.columns_, self.left_out_ = columns, (*self.ignore, *constant)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the columns as numbers, of shape (n_samples, n_features_out)."""
        check_is_fitted(self)
        frame = self._frame(X, reset=False)
        try:
            return encoded_columns(self.columns_, frame, self.allow_unseen)
        except TableError as error:
            raise in_python(error) from error

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features that the columns become: a column's own, or `city=Bern` for a category."""
        check_is_fitted(self)
        return np.array([feature for column in self.columns_ for feature in column.features()], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        """Texts and categories are welcome, and missing values where they are filled."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = self.impute is not None
        return tags

    def _frame(self, X: Any, *, reset: bool) -> "pd.DataFrame":
        """Return a table as a pandas frame whose columns have names, checked as scikit-learn does."""
        pd = pandas()
        if hasattr(X, "to_pandas"):
            X = X.to_pandas()
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, reset=reset, skip_check_array=True)
            frame = X.reset_index(drop=True)
        else:
            finite = "allow-nan" if self.impute is not None else True
            frame = pd.DataFrame(validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=finite))
        if not all(isinstance(name, str) for name in frame.columns):
            frame = frame.set_axis([f"x{place}" for place in range(frame.shape[1])], axis=1)
        return frame.infer_objects()


def in_python(error: TableError) -> TableError:
    """Return an error of the command line in the words of Python: parameters in place of options."""
    message = str(error)
    for option, parameter in OPTIONS:
        message = option.sub(parameter, message)
    return TableError(message, row=error.row, column=error.column, value=error.value)
