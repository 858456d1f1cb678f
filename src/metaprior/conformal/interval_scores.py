"""How far a number lies outside of what was predicted, and which interval keeps that below a threshold.

A prediction becomes a band: two ends and a unit of length at every row. The score of y is max(low - y, y - high) /
unit, and the scores of at most t are those of y in [low - t unit, high + t unit]. Each rule makes a band of another
part of the predictive distribution.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from metaprior.estimators.checks import expect_one_of
from metaprior.predictive.from_sklearn import distribution_predictor_of


class Band(NamedTuple):
    """Two ends and a unit of length for every row."""

    low: np.ndarray
    high: np.ndarray
    unit: np.ndarray

    def scores(self, y: np.ndarray) -> np.ndarray:
        """Return how many units y lies outside of the band; negative inside."""
        return np.maximum(self.low - y, y - self.high) / self.unit

    def widened(self, by: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends moved outwards by so many units; where they would cross, both are the middle."""
        low, high = self.low - by * self.unit, self.high + by * self.unit
        middle = 0.5 * (self.low + self.high)
        return np.minimum(low, middle), np.maximum(high, middle)


#: From a fitted estimator, inputs and a level to a band.
BandRule = Callable[[Any, Any, float], Band]


def _quantile_band(model: Any, X: Any, level: float) -> Band:
    """Return the interval that the model holds to contain y with the probability `level`."""
    ends = _distribution(model, X).quantile(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = (_one_target(end) for end in ends)
    return Band(low, high, np.ones(len(low)))


def _normalised_band(model: Any, X: Any, level: float) -> Band:
    """Return the mean, with the standard deviation as the unit."""
    predicted = _distribution(model, X)
    mean, std = _one_target(predicted.mean), np.sqrt(_one_target(predicted.variance))
    return Band(mean, mean, std)


def _absolute_band(model: Any, X: Any, level: float) -> Band:
    """Return the prediction; its unit is that of y."""
    mean = _one_target(np.asarray(model.predict(X), np.float64))
    return Band(mean, mean, np.ones(len(mean)))


#: The rules by the name of their score.
BANDS: dict[str, BandRule] = {
    "quantile": _quantile_band,
    "normalised": _normalised_band,
    "absolute": _absolute_band,
}


def band_rule(score: Any, estimator: Any) -> BandRule:
    """Return the rule of a score, or raise an error if the estimator does not predict what it needs."""
    expect_one_of("conformity_score", score, tuple(BANDS))
    if score != "absolute":
        try:
            distribution_predictor_of("estimator", estimator)
        except TypeError as error:
            raise TypeError(f"{error} conformity_score='absolute' needs no uncertainty.") from None
    return BANDS[score]


def _distribution(model: Any, X: Any) -> Any:
    return distribution_predictor_of("estimator", model)(model, X)


def _one_target(values: np.ndarray) -> np.ndarray:
    """Return numbers of one target as a vector, or raise an error if there are several."""
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    if values.ndim != 1:
        raise ValueError(
            f"y: expected one target; the estimator predicts {values.shape[1]}. Use one conformal regressor per target."
        )
    return values
