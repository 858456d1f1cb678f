"""What every regressor shares: targets to standard units and back, the likelihood, mean and standard deviation."""

import os
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import Tags

from metaprior.estimators.base import Estimator
from metaprior.estimators.checks import expect, is_number, standard_units
from metaprior.io.checkpoints import checkpoint_config
from metaprior.likelihoods import Gaussian, Heteroscedastic, Likelihood, Poisson, StudentT
from metaprior.predictive import Predictive
from metaprior.predictive.draws import FunctionDraws
from metaprior.predictive.mixture import predictive_of


@dataclass(eq=False, repr=False)
class GaussianRegressorPart(RegressorMixin, Estimator):
    """Targets of one or several columns, standardised inside, with Gaussian noise."""

    _: KW_ONLY
    noise: float | Sequence[float] | None = None

    def __sklearn_tags__(self) -> Tags:
        """Several targets are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, *, checkpoint: str | os.PathLike | None = None, every: int = 1000) -> Self:
        """Fit the posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        checkpoint : str or path, default=None
            A folder to keep the run in: where it was killed, the same call goes on and ends with the same bits.
        every : int, default=1000
            Steps between two checkpoints, rounded up to hundreds.

        Returns
        -------
        self
        """
        place = checkpoint_config(checkpoint, every)
        self._fit(*self._taken(X, y), place)
        return self

    def _taken(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, Likelihood, int]:
        """Check the data; return the arguments of `_fit`."""
        X, y = self._checked(X, y, multi_output=True, y_numeric=True)
        y = np.asarray(y, np.float64)
        flat, columns = y.ndim == 1, y.reshape(len(y), -1)
        self._check_targets(columns)
        if not self._going_on():
            self.y_offset_, self.y_scale_ = self._target_units(columns)
        elif columns.shape[1] != len(self.y_scale_):
            expected, got = len(self.y_scale_), columns.shape[1]
            raise ValueError(f"warm_start: expected {expected} targets, as in the last fit; got {got}.")
        targets = (columns - self.y_offset_) / self.y_scale_
        likelihood = self._likelihood(np.log(self._noise_level(X, targets)))
        self._flat = flat
        return X, targets, likelihood, likelihood.num_functions(columns.shape[1])

    def _check_targets(self, columns: np.ndarray) -> None:
        """Say so where targets are not of the kind that the likelihood knows; any number is Gaussian."""

    def _hold(self) -> float:
        """Return the part of training for which the noise is held at its small start."""
        return self._noise_hold

    def _target_units(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the offset and the scale of every target."""
        return standard_units(columns)

    def _likelihood(self, log_noise: np.ndarray) -> Likelihood:
        """Return p(y | f) before the fit, in standardised units, with the noise of every target."""
        return Gaussian(log_noise, self.noise is None, self._hold())

    def _noise_level(self, X: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the noise of every target, given or at its start, in standardised units."""
        if self.noise is None:
            return self._start_noise(X, targets)
        values: np.ndarray = np.atleast_1d(np.asarray(self.noise))
        fits = values.ndim == 1 and values.size in (1, targets.shape[1])
        if not (fits and all(is_number(v) and v > 0 for v in values)):
            raise ValueError(f"noise: expected a positive number, or one a target; got {self.noise!r}.")
        return np.asarray(values.astype(np.float64) / self.y_scale_)

    def _start_noise(self, X: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return where a learned noise starts, for standardised targets."""
        return np.full(targets.shape[1], self._noise_at_start)

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


@dataclass(eq=False, repr=False)
class RegressorPart(GaussianRegressorPart):
    """Targets of one or several columns, standardised inside (counts are not), with a likelihood to choose."""

    _: KW_ONLY
    likelihood: str = "gaussian"
    noise_hold: float | None = None

    def __sklearn_tags__(self) -> Tags:
        """Counts must not be negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.likelihood == "poisson"
        return tags

    def _check_targets(self, columns: np.ndarray) -> None:
        if self.likelihood == "poisson" and (np.any(columns < 0) or np.any(columns != np.floor(columns))):
            raise ValueError("likelihood='poisson': expected counts (0, 1, 2, ...); y has other values.")

    def _target_units(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.likelihood == "poisson":
            return np.zeros(columns.shape[1]), np.ones(columns.shape[1])
        return super()._target_units(columns)

    def _likelihood(self, log_noise: np.ndarray) -> Likelihood:
        known = ("gaussian", "heteroscedastic", "student_t", "poisson")
        if self.likelihood not in known:
            raise ValueError(f"likelihood: expected one of {known}; got {self.likelihood!r}.")
        if self.likelihood == "poisson":
            return Poisson()
        if self.likelihood == "heteroscedastic":
            right = self.noise is None
            expect("noise", self.noise, "None with likelihood='heteroscedastic', which learns it", right)
            return Heteroscedastic.initial(log_noise, self._hold())
        if self.likelihood == "student_t":
            return StudentT(log_noise, np.asarray(np.log(3.0)), self.noise is None, self._hold())
        return super()._likelihood(log_noise)

    def _hold(self) -> float:
        hold = self.noise_hold
        expect("noise_hold", hold, "a number from 0 to 1, or None", hold is None or is_number(hold) and 0 <= hold <= 1)
        return self._noise_hold if hold is None else float(hold)

    def _predictive(self, draws: FunctionDraws) -> Predictive:
        return predictive_of(draws, self.y_offset_, self.y_scale_, flat=self._flat)
