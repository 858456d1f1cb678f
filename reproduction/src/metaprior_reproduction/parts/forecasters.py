"""Forecasts of evenly spaced series without a kernel: the last season again, ETS and ARIMA.

All of them know the length of a season in rows, and none of them sees the times.
"""

import importlib.util
from typing import Any, Self

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, RegressorMixin

from metaprior.predictive.from_sklearn import GaussianMarginals

#: The package of ETS and ARIMA, which is an extra of the reproduction.
PACKAGE = "statsforecast"
#: The level of the intervals that standard deviations are read from, in percent.
LEVEL = 95


def package_is_there() -> bool:
    """Return whether ETS and ARIMA can run."""
    return importlib.util.find_spec(PACKAGE) is not None


class SeasonalNaive(RegressorMixin, BaseEstimator):
    """The value of one season before, with a spread that grows with the root of the number of seasons ahead.

    The spread of one season is the root mean square of the differences between values one season apart.

    Parameters
    ----------
    season : int
        The number of rows of a season; 1 for a series without one.
    """

    def __init__(self, season: int) -> None:
        self.season = season

    def fit(self, X: Any, y: Any) -> Self:
        """Keep the last season and the spread."""
        values = np.asarray(y, np.float64)
        if len(values) <= self.season:
            raise ValueError(f"SeasonalNaive: expected more than one season of {self.season} rows; got {len(values)}.")
        self.last_ = values[-self.season :]
        self.spread_ = float(np.sqrt(np.mean((values[self.season :] - values[: -self.season]) ** 2)))
        return self

    def predict_distribution(self, X: Any) -> GaussianMarginals:
        """Return the forecast of as many rows as there are in X, which follow the known ones."""
        ahead = np.arange(len(X))
        return GaussianMarginals(self.last_[ahead % self.season], self.spread_ * np.sqrt(1 + ahead // self.season))


class StatsForecast(RegressorMixin, BaseEstimator):
    """AutoETS or AutoARIMA of the package statsforecast, which choose their own form by an information criterion.

    Parameters
    ----------
    model : {"AutoETS", "AutoARIMA"}
        Which model.
    season : int
        The number of rows of a season; 1 for a series without one.
    """

    def __init__(self, model: str, season: int) -> None:
        self.model = model
        self.season = season

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model."""
        from statsforecast import models

        self.model_ = getattr(models, self.model)(season_length=self.season).fit(np.asarray(y, np.float64))
        return self

    def predict_distribution(self, X: Any) -> GaussianMarginals:
        """Return the forecast of as many rows as there are in X, which follow the known ones."""
        found = self.model_.predict(h=len(X), level=[LEVEL])
        width = np.asarray(found[f"hi-{LEVEL}"]) - np.asarray(found[f"lo-{LEVEL}"])
        return GaussianMarginals(np.asarray(found["mean"]), width / (2 * ndtri(0.5 + LEVEL / 200)))
