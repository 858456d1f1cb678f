"""The predictions of any scikit-learn estimator as a predictive distribution that can be scored.

An estimator of this library has one of its own, `predict_distribution`. A regressor whose `predict` accepts
`return_std=True` is taken to predict Gaussians, and a classifier predicts class probabilities. Pipelines and searches
predict as the estimator at their end does.
"""

import inspect
from collections.abc import Callable
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from scipy.special import entr, ndtr, ndtri
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline

from metaprior.predictive.classes import class_numbers
from metaprior.predictive.protocol import PredictiveDistribution

#: Estimators that fit the estimator they hold more than once, to keep the best.
SEARCHES = (GridSearchCV, RandomizedSearchCV)
#: From a fitted estimator and inputs to a distribution.
DistributionPredictor = Callable[[Any, Any], PredictiveDistribution]


@runtime_checkable
class PredictsDistribution(Protocol):
    """An estimator with a predictive distribution of its own, as those of this library have."""

    def predict_distribution(self, X: Any) -> PredictiveDistribution:
        """Return the predictive distribution at the rows of X."""


@final
class GaussianMarginals:
    """Independent Gaussians, of which the means and the standard deviations are known, [N] or [N, outputs].

    A standard deviation of NaN is an unknown one: densities, levels and scores that depend on it are NaN, too.
    """

    is_classification = False

    def __init__(self, mean: np.ndarray, std: np.ndarray) -> None:
        self.mean = np.asarray(mean, np.float64)
        self.std = np.maximum(np.asarray(std, np.float64), np.finfo(np.float64).tiny)

    @property
    def variance(self) -> np.ndarray:
        """std^2."""
        return self.std**2

    @property
    def probabilities(self) -> np.ndarray:
        """Refuse: these are no classes."""
        raise AttributeError("probabilities: this is a regression; use mean and std.")

    @property
    def classes(self) -> np.ndarray:
        """Refuse: these are no classes."""
        raise AttributeError("classes: this is a regression; it has none.")

    @property
    def entropy(self) -> np.ndarray:
        """H[y | x] = log(2 pi e std^2) / 2, summed over outputs."""
        return self._over_outputs(0.5 * np.log(2 * np.pi * np.e) + np.log(self.std))

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return -z^2 / 2 - log std - log(2 pi) / 2, summed over outputs."""
        with np.errstate(over="ignore"):
            return self._over_outputs(-0.5 * self._scores(y) ** 2 - np.log(self.std) - 0.5 * np.log(2 * np.pi))

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Return Phi(z)."""
        return ndtr(self._scores(y))

    def quantile(self, q: float | np.ndarray) -> np.ndarray:
        """Return mean + std Phi^-1(q); several levels come first: [levels, N, ...]."""
        levels = np.asarray(q, np.float64)
        return self.mean + self.std * ndtri(levels.reshape(levels.shape + (1,) * self.mean.ndim))

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return (y - mean) (2 Phi(z) - 1) + std (2 phi(z) - 1 / sqrt(pi))."""
        z = self._scores(y)
        with np.errstate(over="ignore"):
            density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        return (y - self.mean) * (2 * ndtr(z) - 1) + self.std * (2 * density - 1 / np.sqrt(np.pi))

    def _scores(self, y: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore"):
            return (np.asarray(y, np.float64) - self.mean) / self.std

    def _over_outputs(self, values: np.ndarray) -> np.ndarray:
        return values if values.ndim == 1 else np.sum(values, axis=1)


@final
class ClassProbabilities:
    """Class probabilities, [N, C], and the labels of the classes; None: 0, 1, ..."""

    is_classification = True

    def __init__(self, probabilities: np.ndarray, classes: np.ndarray | None = None) -> None:
        self.probabilities = self.mean = np.asarray(probabilities, np.float64)
        self.classes = np.arange(self.probabilities.shape[1]) if classes is None else np.asarray(classes)

    @property
    def variance(self) -> np.ndarray:
        """The variance of being in a class, p (1 - p)."""
        return self.probabilities * (1 - self.probabilities)

    @property
    def entropy(self) -> np.ndarray:
        """-sum p log p."""
        return np.sum(entr(self.probabilities), axis=1)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return the log of the probability of every label."""
        numbers = class_numbers(self.classes, y, "log_prob")
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities[np.arange(len(numbers)), numbers])

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Refuse: classes have none."""
        raise AttributeError("cdf: classes have no order; use probabilities.")

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Refuse: classes have none."""
        raise AttributeError("crps: classes have no order; use log_prob.")


def distribution_predictor_of(name: str, estimator: Any) -> DistributionPredictor:
    """Return how an estimator, once fitted, predicts a distribution; raise a TypeError if it cannot.

    The attributes that are looked for are scikit-learn's own conventions.
    """
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        hint = "; make an instance of it" if isinstance(estimator, type) else ""
        raise TypeError(f"{name}: expected a scikit-learn estimator; got {estimator!r}{hint}.")
    end = _end(estimator)
    if isinstance(end, PredictsDistribution):
        return predict_own_distribution
    if is_regressor(estimator) and "return_std" in inspect.signature(end.predict).parameters:
        return _predict_gaussian
    if is_classifier(estimator) and hasattr(end, "predict_proba"):
        return _predict_classes
    raise TypeError(
        f"{name}: expected an estimator that predicts its uncertainty, by predict_distribution, "
        f"predict(return_std=True) or predict_proba; {type(end).__name__} has none of them."
    )


def value_predictor_of(name: str, estimator: Any) -> DistributionPredictor:
    """Return how an estimator predicts a distribution, whose spread is unknown (NaN) if a regressor predicts none."""
    try:
        return distribution_predictor_of(name, estimator)
    except TypeError:
        is_estimator = hasattr(estimator, "get_params") and not isinstance(estimator, type)
        if is_estimator and is_regressor(estimator) and hasattr(_end(estimator), "predict"):
            return _predict_values
        raise


def _end(estimator: Any) -> Any:
    """Return the estimator that predicts: the last step of a pipeline, the one a search tries."""
    if isinstance(estimator, Pipeline):
        return _end(estimator.steps[-1][1])
    return _end(estimator.estimator) if isinstance(estimator, SEARCHES) else estimator


def at_end(model: Any, X: Any) -> tuple[Any, Any]:
    """Return the fitted estimator that predicts, and the inputs as they reach it."""
    if isinstance(model, Pipeline):
        return at_end(model[-1], model[:-1].transform(X) if len(model) > 1 else X)
    return at_end(model.best_estimator_, X) if isinstance(model, SEARCHES) else (model, X)


def predict_own_distribution(model: Any, X: Any) -> PredictiveDistribution:
    """Return the distribution that the estimator, or the one at the end of a pipeline, predicts itself."""
    end, X = at_end(model, X)
    return end.predict_distribution(X)


def _predict_gaussian(model: Any, X: Any) -> PredictiveDistribution:
    end, X = at_end(model, X)
    return GaussianMarginals(*end.predict(X, return_std=True))


def _predict_values(model: Any, X: Any) -> PredictiveDistribution:
    values = np.asarray(model.predict(X), np.float64)
    return GaussianMarginals(values, np.full(values.shape, np.nan))


def _predict_classes(model: Any, X: Any) -> PredictiveDistribution:
    return ClassProbabilities(model.predict_proba(X), model.classes_)
