"""Predictions in closed form: functions with jointly Gaussian values, observed with Gaussian noise.

y_n ~ N(f_n, noise^2) and f_n ~ N(mean_n, variance_n), so y_n ~ N(mean_n, variance_n + noise^2), and everything that
other models compute by mixing draws has its formula here. Draws are made only where draws are asked for.
"""

import abc
from functools import cached_property
from typing import Self, final

import numpy as np
from scipy.special import ndtr, ndtri

from metaprior.predictive.base import Entropies, Moments, Predictive
from metaprior.predictive.gaussian_mixture import joint_log_density
from metaprior.predictive.limits import require_room

#: Functions that `draws` and `sample` return.
NUM_DRAWS = 128


class GaussianFunctions(abc.ABC):
    """Functions whose values at given rows are jointly Gaussian, in standardised units; outputs are independent."""

    num_rows: int

    @abc.abstractmethod
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance of every value, [N, outputs] each."""

    @abc.abstractmethod
    def covariance(self) -> np.ndarray:
        """Return the covariance of the values over the rows, one output at a time, [outputs, N, N]."""

    @abc.abstractmethod
    def at_rows(self, rows: np.ndarray) -> Self:
        """Return the same functions at some of the rows."""

    @abc.abstractmethod
    def draws(self, num_draws: int, seed: int) -> np.ndarray:
        """Return functions drawn jointly over the rows, [num_draws, N, outputs]."""


@final
class GaussianPredictive(Predictive):
    """The predictive distribution at given inputs where it is Gaussian: in closed form, without error of sampling.

    Parameters
    ----------
    functions : GaussianFunctions
        The distribution of the functions, in standardised units.
    noise : array
        Standard deviation of the observations around the function, one number per output, in standardised units.
    offset, scale : array
        y = offset + scale * (standardised y), one number per output.
    flat : bool
        Whether the targets were a vector.
    seed : int
        Decides the draws.
    """

    def __init__(
        self,
        functions: GaussianFunctions,
        noise: np.ndarray,
        offset: np.ndarray,
        scale: np.ndarray,
        *,
        flat: bool,
        seed: int,
    ) -> None:
        super().__init__(offset, scale, flat=flat)
        self._functions, self._noise, self._seed = functions, np.asarray(noise, np.float64), seed
        #: The distribution that this one is a part of, and its rows there: functions are drawn once, for the whole.
        self._whole: tuple[GaussianPredictive, np.ndarray] | None = None

    def __len__(self) -> int:
        """Return the number of inputs."""
        return self._functions.num_rows

    @property
    def num_draws(self) -> int:
        """How many functions `draws` and `sample` return; nothing else needs any."""
        return NUM_DRAWS

    @property
    def is_classification(self) -> bool:
        """No: y is Gaussian."""
        return False

    def function_draws(self, num_draws: int, seed: int) -> np.ndarray:
        """Return as many functions as asked for, of another seed, [num_draws, N] or [num_draws, N, outputs]."""
        return self._restored(self._functions.draws(num_draws, seed))

    @cached_property
    def _functions_at_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """E[f] and var[f], [N, outputs]."""
        return self._functions.moments()

    @property
    def _spread(self) -> np.ndarray:
        """Standard deviation of y, [N, outputs]."""
        return np.sqrt(self._functions_at_rows[1] + self._noise**2)

    def _scores(self, y: np.ndarray) -> np.ndarray:
        """Return (y - mean) / std, [N, outputs]."""
        return (y - self._functions_at_rows[0]) / self._spread

    def _standard_components(self) -> tuple[np.ndarray, np.ndarray]:
        return self._functions_at_rows[0][None], self._spread[None]

    def _standard_moments(self) -> Moments:
        mean, variance = self._functions_at_rows
        return Moments(mean, variance, np.broadcast_to(self._noise**2, mean.shape))

    def _standard_entropies(self) -> Entropies:
        # H[N(m, s^2)] = log(2 pi e) / 2 + log s, summed over independent outputs
        constant, spread = 0.5 * np.log(2 * np.pi * np.e), self._spread
        noise = np.broadcast_to(self._noise, spread.shape)
        return Entropies(np.sum(constant + np.log(spread), axis=1), np.sum(constant + np.log(noise), axis=1))

    def _standard_quantile(self, level: float) -> np.ndarray:
        return self._functions_at_rows[0] + self._spread * ndtri(level)

    def _standard_log_prob(self, y: np.ndarray) -> np.ndarray:
        each = -0.5 * self._scores(y) ** 2 - np.log(self._spread) - 0.5 * np.log(2 * np.pi)
        return np.sum(each, axis=1)

    def _standard_cdf(self, y: np.ndarray) -> np.ndarray:
        return ndtr(self._scores(y))

    def _standard_crps(self, y: np.ndarray) -> np.ndarray:
        # s (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)), z = (y - mean) / s
        z = self._scores(y)
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        return self._spread * (z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi))

    def _standard_draws(self) -> np.ndarray:
        if self._whole is not None:
            whole, rows = self._whole
            return whole._standard_draws()[:, rows]
        return self._functions.draws(NUM_DRAWS, self._seed)

    def _standard_covariance(self) -> np.ndarray:
        return self._functions.covariance()

    def _standard_joint_log_prob(self, y: np.ndarray) -> float:
        require_room("joint_log_prob", len(self), len(self._noise))
        own, mean = self._functions.covariance(), self._functions_at_rows[0]
        each = zip(own, y.T - mean.T, self._noise, strict=True)
        return sum(joint_log_density(covariance, gap, noise) for covariance, gap, noise in each)

    def _at_rows(self, rows: np.ndarray) -> Self:
        part = type(self)(
            self._functions.at_rows(rows), self._noise, self._offset, self._scale, flat=self._flat, seed=self._seed
        )
        part._whole = (self, rows) if self._whole is None else (self._whole[0], self._whole[1][rows])
        if "_functions_at_rows" in vars(self):
            mean, variance = self._functions_at_rows
            vars(part)["_functions_at_rows"] = mean[rows], variance[rows]
        return part

    def _standard_sample(self, rng: np.random.Generator) -> np.ndarray:
        draws = self._standard_draws()
        return draws + self._noise * rng.standard_normal(draws.shape)
