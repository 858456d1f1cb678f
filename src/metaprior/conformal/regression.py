"""Split conformal prediction for a regressor: intervals that contain y."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from metaprior.conformal.interval_scores import band_rule
from metaprior.conformal.split import SplitConformal


@dataclass(eq=False, repr=False)
class ConformalRegressor(RegressorMixin, SplitConformal):
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

    estimator: Any
    _: KW_ONLY
    level: float = 0.9
    conformity_score: str = "quantile"
    calibration_size: float | int = 0.25
    random_state: int | np.random.RandomState | None = None

    def predict_interval(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the low and the high ends of the intervals, [n_samples] each; infinite if calibration had few rows.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        band = band_rule(self.conformity_score, self.estimator_)(self.estimator_, X, self.level)
        return band.widened(self.threshold_)

    def _check_estimator_and_score(self) -> None:
        band_rule(self.conformity_score, self.estimator)

    def _calibrate(self, model: Any, X: Any, y: Any, random: np.random.RandomState) -> Self:
        y = np.asarray(column_or_1d(y), np.float64)
        scores = band_rule(self.conformity_score, model)(model, X, self.level).scores(y)
        self._keep(model, scores, "All intervals are infinite")
        return self
