"""What every regressor shares: targets to standard units and back, the likelihood, mean and standard deviation."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from metaprior.estimators.base import Estimator
from metaprior.estimators.checks import is_number, standard_units
from metaprior.likelihoods import Gaussian, Likelihood, Poisson, StudentT
from metaprior.prediction import FunctionDraws, Predictive

#: Noise at the start, in standard deviations of the target: small, so that the signal is learned first.
START_NOISE = 0.1


@dataclass(eq=False, repr=False)
class RegressorPart(RegressorMixin, Estimator):
    """Targets of one or several columns, standardised inside."""

    _: KW_ONLY
    likelihood: str = "gaussian"
    noise: float | Sequence[float] | None = None

    def __sklearn_tags__(self) -> Tags:
        """Several targets are welcome; counts must not be negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = self.likelihood == "poisson"
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        self
        """
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        y = np.asarray(y, np.float64)
        flat, columns = y.ndim == 1, y.reshape(len(y), -1)
        if self.likelihood == "poisson" and (np.any(columns < 0) or np.any(columns != np.floor(columns))):
            raise ValueError("likelihood='poisson': expected counts (0, 1, 2, ...); y has other values.")
        if not self._going_on():
            self.y_offset_, self.y_scale_ = self._target_units(columns)
        likelihood = self._likelihood()
        self._flat = flat
        self._fit(X, (columns - self.y_offset_) / self.y_scale_, likelihood, columns.shape[1])
        return self

    def _target_units(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.likelihood == "poisson":
            return np.zeros(columns.shape[1]), np.ones(columns.shape[1])
        return standard_units(columns)

    def _likelihood(self) -> Likelihood:
        known = ("gaussian", "student_t", "poisson")
        if self.likelihood not in known:
            raise ValueError(f"likelihood: expected one of {known}; got {self.likelihood!r}.")
        if self.likelihood == "poisson":
            return Poisson()
        learned = self.noise is None
        level = np.full(self.y_scale_.shape, START_NOISE)
        if not learned:
            values: np.ndarray = np.atleast_1d(np.asarray(self.noise))
            right = values.ndim == 1 and values.size in (1, level.size) and all(is_number(v) and v > 0 for v in values)
            if not right:
                raise ValueError(f"noise: expected a positive number, or one a target; got {self.noise!r}.")
            level = values.astype(np.float64) / self.y_scale_
        if self.likelihood == "gaussian":
            return Gaussian(np.log(level), learned)
        return StudentT(np.log(level), np.asarray(np.log(3.0)), learned)

    def _predictive(self, draws: FunctionDraws) -> Predictive:
        return Predictive(draws, self.y_offset_, self.y_scale_, flat=self._flat)

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the mean of y, and its standard deviation if asked.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return the predictive standard deviation (function and noise) as well.

        Returns
        -------
        mean, or (mean, std) : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        predictive = self.predict_distribution(X)
        return (predictive.mean, predictive.std) if return_std else predictive.mean
