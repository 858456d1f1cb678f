"""Where a model is asked for a plot along one column: a grid over that column, the others at their medians."""

from typing import Any, NamedTuple

import numpy as np

from metaprior.predictive import PredictiveDistribution
from metaprior.predictive.from_sklearn import PredictsDistribution, distribution_predictor_of


class Grid(NamedTuple):
    """Rows to ask a model about, and the column along which they lie."""

    #: As the model takes them: an array, or a data frame where X is one.
    rows: Any
    #: The values of the column, at the rows and in the data.
    x: np.ndarray
    data: np.ndarray
    name: str


def predicted_by(model: Any, X: Any) -> PredictiveDistribution:
    """Return what a fitted model predicts: by `predict_distribution`, or as scikit-learn's estimators do."""
    if isinstance(model, PredictsDistribution):
        return model.predict_distribution(X)
    return distribution_predictor_of("model", model)(model, X)


def grid_along(X: Any, column: int | str | None, n_points: int, margin: float, question: str) -> Grid:
    """Return a grid over a column of X that reaches beyond the data by a fraction `margin` of their range."""
    names = names_of(X)
    number = _column_number(names, np.shape(X), column, question)
    values = np.asarray(X.iloc[:, number] if hasattr(X, "iloc") else np.asarray(X)[:, number], np.float64)
    low, high = float(np.min(values)), float(np.max(values))
    reach = margin * (high - low if high > low else 1.0)
    x = np.linspace(low - reach, high + reach, n_points)
    if hasattr(X, "iloc"):
        usual = X.iloc[np.zeros(n_points, int)].reset_index(drop=True)
        for other, name in enumerate(X.columns):
            usual[name] = x if other == number else _usual(X.iloc[:, other])
        return Grid(usual, x, values, names[number])
    usual = np.tile(np.median(np.asarray(X, np.float64), axis=0), (n_points, 1))
    usual[:, number] = x
    return Grid(usual, x, values, names[number])


def names_of(X: Any) -> list[str]:
    """Return the names of the columns: those of a data frame, or x (of one) and x0, x1, ... (of several)."""
    if hasattr(X, "columns"):
        return [str(name) for name in X.columns]
    shape = np.shape(X)
    if len(shape) != 2 or shape[0] == 0:
        raise ValueError(f"X: expected rows and columns, with at least one row; got an array of shape {shape}.")
    return ["x"] if shape[1] == 1 else [f"x{number}" for number in range(shape[1])]


def _usual(column: Any) -> Any:
    """Return the median of numbers, or the most frequent of other values."""
    return column.median() if np.issubdtype(column.dtype, np.number) else column.mode().iloc[0]


def _column_number(names: list[str], shape: tuple[int, ...], column: int | str | None, question: str) -> int:
    if column is None:
        if len(names) == 1:
            return 0
        raise ValueError(
            f"{question}: expected X with one column, or the column to draw along; X has {len(names)}: pass "
            f"column=, one of {names} or its number. The other columns stay at their medians."
        )
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int | np.integer) and 0 <= column < len(names):
        return int(column)
    raise ValueError(f"column: expected one of {names}, or a number from 0 to {len(names) - 1}; got {column!r}.")
