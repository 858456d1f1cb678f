"""Split conformal prediction for a regressor: fit on some rows, calibrate on others."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, column_or_1d

from metaprior.conformal.calibration_rows import split_rows
from metaprior.conformal.interval_scores import band_rule
from metaprior.conformal.ranks import check_level, coverage_interval, threshold, warn_of_too_few


class ConformalRegressor(MetaEstimatorMixin, RegressorMixin, BaseEstimator):
    """Intervals that contain y with a probability of at least `level`, whatever the estimator and the data.

    The probability is over the rows of calibration and the new row together, which must be exchangeable. It is also at
    most level + 1 / (n + 1) for n rows of calibration without ties.

    Parameters
    ----------
    estimator : regressor
        A regressor of this library, or any other of scikit-learn. `fit` fits a clone of it.
    level : float, default=0.9
        The probability that an interval contains y.
    conformity_score : {"quantile", "normalised", "absolute"}, default="quantile"
        What is calibrated. "quantile" moves both ends of the central predictive interval by the same length
        (conformalised quantile regression). "normalised" multiplies the predictive standard deviation. "absolute" gives
        all intervals the same length, and needs nothing but `predict`.
    calibration_size : float or int, default=0.25
        The part of the rows, or their number, that `fit` holds back to calibrate.
    random_state : int, RandomState instance or None, default=None
        Decides which rows these are.

    Attributes
    ----------
    estimator_ : regressor
        The fitted estimator.
    scores_ : ndarray of shape (n_calibration,)
        How far y lies outside of the band of the estimator, at the rows of calibration.
    threshold_ : float
        The score that an interval reaches up to: the ceil((n + 1) level)-th smallest of `scores_`, or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from metaprior.conformal import ConformalRegressor
    >>> X, y = np.arange(40.0)[:, None], np.arange(40.0) + np.tile([1.0, -1.0], 20)
    >>> model = ConformalRegressor(LinearRegression(), conformity_score="absolute", random_state=0).fit(X, y)
    >>> low, high = model.predict_interval([[50.0]])
    >>> bool(low[0] < 50 < high[0])
    True
    """

    def __init__(
        self,
        estimator: Any,
        *,
        level: float = 0.9,
        conformity_score: str = "quantile",
        calibration_size: float | int = 0.25,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.level = level
        self.conformity_score = conformity_score
        self.calibration_size = calibration_size
        self.random_state = random_state

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
        self._check()
        X_fit, y_fit, X_held, y_held = split_rows(X, y, self.calibration_size, self.random_state)
        return self._calibrate(clone(self.estimator).fit(X_fit, y_fit), X_held, y_held)

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
        self._check()
        check_is_fitted(self.estimator)
        return self._calibrate(self.estimator, X, y)

    def predict(self, X: Any) -> np.ndarray:
        """Return what the fitted estimator predicts, [n_samples]."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def predict_interval(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the low and the high ends of the intervals, [n_samples] each; infinite if calibration had few rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        band = band_rule(self.conformity_score, self.estimator_)(self.estimator_, X, self.level)
        return band.widened(self.threshold_)

    def coverage_interval(self, probability: float = 0.9) -> tuple[float, float]:
        """Return where the coverage of all future rows lies, given the rows of calibration that there happen to be.

        The coverage is `level` on average over such rows; for one set of n of them it follows Beta(k, n + 1 - k), k =
        ceil((n + 1) level). This is the central interval that contains it with a probability.
        """
        check_is_fitted(self)
        return coverage_interval(len(self.scores_), self.level, probability)

    def _check(self) -> None:
        check_level(self.level)
        band_rule(self.conformity_score, self.estimator)

    def _calibrate(self, model: Any, X: Any, y: Any) -> Self:
        y = np.asarray(column_or_1d(y), np.float64)
        scores = band_rule(self.conformity_score, model)(model, X, self.level).scores(y)
        warn_of_too_few(len(scores), self.level, "All intervals are infinite")
        self.estimator_, self.scores_ = model, scores
        self.threshold_ = threshold(scores, self.level)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether it has been calibrated."""
        return hasattr(self, "threshold_")
