"""Split conformal prediction: fit on some rows, calibrate on others. What regressors and classifiers share."""

import abc
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted, check_random_state

from metaprior.conformal.calibration_rows import split_rows
from metaprior.conformal.ranks import check_level, coverage_interval, threshold, warn_of_too_few


class SplitConformal(MetaEstimatorMixin, BaseEstimator, abc.ABC):
    """An estimator that is fitted to some rows, and a threshold for its scores from other rows."""

    estimator: Any
    level: float
    calibration_size: float | int
    random_state: int | np.random.RandomState | None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a clone of the estimator to most rows, and calibrate it on the others.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        random = self._checked_random_state()
        X_fit, y_fit, X_held, y_held = split_rows(X, y, self.calibration_size, random)
        return self._calibrate(clone(self.estimator).fit(X_fit, y_fit), X_held, y_held, random)

    def calibrate(self, X: Any, y: Any) -> Self:
        """Calibrate the estimator, which has been fitted to other rows, and leave it as it is.

        Parameters
        ----------
        X : array-like or data frame of shape (n_calibration, n_features)
        y : array-like of shape (n_calibration,)

        Returns
        -------
        self
        """
        random = self._checked_random_state()
        check_is_fitted(self.estimator)
        return self._calibrate(self.estimator, X, y, random)

    def predict(self, X: Any) -> np.ndarray:
        """Return what the fitted estimator predicts, [n_samples]."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def coverage_interval(self, probability: float = 0.9) -> tuple[float, float]:
        """Return where the coverage of all future rows lies, given the rows of calibration that there happen to be.

        The coverage is `level` on average over such rows; for one set of n of them it follows Beta(k, n + 1 - k), k =
        ceil((n + 1) level). This is the central interval that contains it with a probability. For sets of classes it
        holds with `allow_empty=True`; the most probable class can only add to the coverage.
        """
        check_is_fitted(self)
        return coverage_interval(len(self.scores_), self.level, probability)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether it has been calibrated."""
        return hasattr(self, "threshold_")

    @abc.abstractmethod
    def _check_estimator_and_score(self) -> None:
        """Raise an error unless the estimator can be scored in the way that is asked for."""

    @abc.abstractmethod
    def _calibrate(self, model: Any, X: Any, y: Any, random: np.random.RandomState) -> Self:
        """Score the rows of calibration under a fitted model, and keep both."""

    def _checked_random_state(self) -> np.random.RandomState:
        check_level(self.level)
        self._check_estimator_and_score()
        return check_random_state(self.random_state)

    def _keep(self, model: Any, scores: np.ndarray, if_too_few: str) -> None:
        warn_of_too_few(len(scores), self.level, if_too_few)
        self.estimator_, self.scores_ = model, scores
        self.threshold_ = threshold(scores, self.level)
