"""Predictions in closed form: functions with jointly Gaussian values, observed with Gaussian noise.

y_n ~ N(f_n, noise^2) and f_n ~ N(mean_n, variance_n), so y_n ~ N(mean_n, variance_n + noise^2), and every question that
`Predictive` answers by mixing draws has its formula here. Draws are made only where draws are asked for.
"""

import abc
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from metaprior.likelihoods import Gaussian
from metaprior.predictive.draws import Predictive

#: Functions that `draws` and `sample` give.
NUM_DRAWS = 128


class GaussianFunctions(abc.ABC):
    """Functions whose values at given rows are jointly Gaussian, in standardised units; outputs are independent."""

    num_rows: int

    @abc.abstractmethod
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance of every value, [N, outputs] each."""

    @abc.abstractmethod
    def draws(self, num_draws: int, seed: int) -> np.ndarray:
        """Return functions drawn jointly over the rows, [num_draws, N, outputs]."""


class GaussianPredictive(Predictive):
    """The predictive distribution at given inputs where it is Gaussian: `Predictive`, without error of sampling.

    Parameters
    ----------
    functions : GaussianFunctions
        The distribution of the functions, in standardised units.
    noise : array
        Standard deviation of the observations around the function, one an output, in standardised units.
    offset, scale : array
        y = offset + scale * (standardised y), an output at a time.
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
        """Keep what is needed; each answer is computed when it is asked for."""
        self._functions, self._seed, self._flat = functions, seed, flat
        self._noise, self._likelihood = np.asarray(noise, np.float64), Gaussian(np.log(noise))
        self._offset, self._scale = np.asarray(offset, np.float64), np.asarray(scale, np.float64)

    def __len__(self) -> int:
        """Return the number of inputs."""
        return self._functions.num_rows

    @property
    def num_draws(self) -> int:
        """How many functions `draws` and `sample` give; the other answers mix none."""
        return NUM_DRAWS

    @cached_property
    def _functions_at_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """E[f] and var[f], standardised, [N, outputs]."""
        return self._functions.moments()

    @property
    def _spread(self) -> np.ndarray:
        """Standard deviation of y, standardised, [N, outputs]."""
        return np.sqrt(self._functions_at_rows[1] + self._noise**2)

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean, variance = self._functions_at_rows
        noise = np.broadcast_to((self._scale * self._noise) ** 2, mean.shape)
        mean, variance = self._offset + self._scale * mean, self._scale**2 * variance
        return self._shaped(mean), self._shaped(variance), self._shaped(noise)

    @cached_property
    def _entropies(self) -> tuple[np.ndarray, np.ndarray]:
        # H[N(m, s^2)] = log(2 pi e) / 2 + log s, summed over independent outputs
        constant = 0.5 * np.log(2 * np.pi * np.e) + np.log(self._scale)
        noise = np.broadcast_to(self._noise, self._spread.shape)
        return np.sum(constant + np.log(self._spread), axis=1), np.sum(constant + np.log(noise), axis=1)

    @property
    def entropy(self) -> np.ndarray:
        """H[y | x] in nats, of all outputs together; exact."""
        return self._entropies[0]

    def _standard_quantile(self, level: float) -> np.ndarray:
        return self._functions_at_rows[0] + self._spread * ndtri(level)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return log p(y_n | x_n): the log density of given targets, of all outputs together."""
        each = -0.5 * self._scores(y, "log_prob") ** 2 - np.log(self._spread * self._scale) - 0.5 * np.log(2 * np.pi)
        return np.sum(each, axis=1)

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Return P(Y_n <= y_n | x_n) at given targets, an output at a time: [N] or [N, outputs]."""
        return self._shaped(ndtr(self._scores(y, "cdf")))

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return the continuous ranked probability score of given targets, an output at a time: [N] or [N, outputs].

        E|Y - y| - E|Y - Y'| / 2 for independent Y, Y' of this distribution, in the units of y; exact.
        """
        # s (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)), z = (y - mean) / s
        z = self._scores(y, "crps")
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        of_standard_normal = z * (2 * ndtr(z) - 1) + 2 * density - 1 / np.sqrt(np.pi)
        return self._shaped(self._scale * self._spread * of_standard_normal)

    def _scores(self, y: np.ndarray, question: str) -> np.ndarray:
        """Return (y - mean) / std, [N, outputs]."""
        return (self._standardised(y, question) - self._functions_at_rows[0]) / self._spread

    def draws(self) -> np.ndarray:
        """Return functions drawn jointly over the rows, [S, N] or [S, N, outputs]: what y would be without noise."""
        return self.function_draws(NUM_DRAWS, self._seed)

    def function_draws(self, num_draws: int, seed: int) -> np.ndarray:
        """Return as many functions as asked for, of another seed."""
        return self._shaped(self._offset + self._scale * self._functions.draws(num_draws, seed))

    def sample(self, random_state: int) -> np.ndarray:
        """Return one observation y for every draw, noise and all, [S, N] or [S, N, outputs]."""
        draws = self.draws()
        level = self._shaped(self._scale * self._noise)
        return draws + level * np.random.default_rng(random_state).standard_normal(draws.shape)
