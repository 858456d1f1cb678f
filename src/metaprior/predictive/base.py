"""What `predict_distribution` returns: the predictive distribution, in the units of the data.

`Predictive` has every public method. A final class beside it says how the distribution is computed, in standardised
units: by mixing draws of functions (`mixture`) or in closed form (`gaussian`).
"""

import abc
from functools import cached_property
from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    """The mean of y, and its variance in two parts, [N, outputs] each."""

    mean: np.ndarray
    epistemic_variance: np.ndarray
    aleatoric_variance: np.ndarray


class Entropies(NamedTuple):
    """H[y | x] and the expectation of H[y | f], [N] each."""

    total: np.ndarray
    conditional: np.ndarray


class Predictive(abc.ABC):
    """The predictive distribution at given inputs.

    Arrays have one row per input; regression with one target has no column axis. Each quantity is computed when it is
    first asked for.

    Parameters
    ----------
    offset, scale : array
        y = offset + scale * (standardised y), one number per output.
    flat : bool
        Whether the targets were a vector.
    """

    def __init__(self, offset: np.ndarray, scale: np.ndarray, *, flat: bool) -> None:
        self._offset, self._scale = np.asarray(offset, np.float64), np.asarray(scale, np.float64)
        self._flat = flat

    # --- what a final class provides, in standardised units -------------------------

    @abc.abstractmethod
    def __len__(self) -> int:
        """Return the number of inputs."""

    @property
    @abc.abstractmethod
    def num_draws(self) -> int:
        """How many functions `draws` and `sample` return."""

    @property
    @abc.abstractmethod
    def is_classification(self) -> bool:
        """Whether the targets are classes."""

    @abc.abstractmethod
    def _standard_moments(self) -> Moments:
        """Return the moments of y."""

    @abc.abstractmethod
    def _standard_entropies(self) -> Entropies:
        """Return the entropies of y, of all outputs together."""

    @abc.abstractmethod
    def _standard_quantile(self, level: float) -> np.ndarray:
        """Return a quantile of y, [N, outputs]."""

    @abc.abstractmethod
    def _standard_log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return the log density of targets [N, outputs], of all outputs together, [N]."""

    @abc.abstractmethod
    def _standard_cdf(self, y: np.ndarray) -> np.ndarray:
        """Return P(Y <= y) at targets [N, outputs], one output at a time."""

    @abc.abstractmethod
    def _standard_crps(self, y: np.ndarray) -> np.ndarray:
        """Return the continuous ranked probability score of targets [N, outputs], one output at a time."""

    @abc.abstractmethod
    def _standard_draws(self) -> np.ndarray:
        """Return the mean of y under every function draw, [S, N, outputs], each function coherent over the rows."""

    @abc.abstractmethod
    def _standard_sample(self, rng: np.random.Generator) -> np.ndarray:
        """Return one observation for every function draw, [S, N, outputs]; class numbers have one column."""

    # --- moments --------------------------------------------------------------------

    @cached_property
    def _moments(self) -> Moments:
        mean, epistemic, aleatoric = self._standard_moments()
        _require_finite(mean + epistemic + aleatoric)
        return Moments(
            self._restored(mean),
            self._shaped(self._scale**2 * epistemic),
            self._shaped(self._scale**2 * aleatoric),
        )

    @property
    def mean(self) -> np.ndarray:
        """E[y | x]; class probabilities for a classifier."""
        return self._moments.mean

    @property
    def epistemic_variance(self) -> np.ndarray:
        """Variance of E[y | f] over functions f: what more data would remove."""
        return self._moments.epistemic_variance

    @property
    def aleatoric_variance(self) -> np.ndarray:
        """Mean of var[y | f] over functions f: the noise of the observations."""
        return self._moments.aleatoric_variance

    @property
    def variance(self) -> np.ndarray:
        """Var[y | x] = epistemic + aleatoric."""
        return self._moments.epistemic_variance + self._moments.aleatoric_variance

    @property
    def std(self) -> np.ndarray:
        """The root of the variance."""
        return np.sqrt(self.variance)

    @property
    def probabilities(self) -> np.ndarray:
        """Class probabilities, [N, C]."""
        if not self.is_classification:
            raise AttributeError("probabilities: this is a regression; use mean, std, quantile or interval.")
        return self.mean

    # --- quantiles and densities ----------------------------------------------------

    def quantile(self, q: float | np.ndarray) -> np.ndarray:
        """Return quantiles of y, [N] or [N, outputs]; several levels come first: [levels, N, ...]."""
        levels = np.atleast_1d(np.asarray(q, np.float64))
        self._require_order("quantile", "probabilities")
        if not np.all((levels > 0) & (levels < 1)):
            raise ValueError(f"quantile: levels must lie strictly between 0 and 1; got {q!r}.")
        found = np.stack([self._restored(self._standard_quantile(level)) for level in levels])
        return found[0] if np.ndim(q) == 0 else found

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the central interval that holds y with probability `level`."""
        low, high = self.quantile(np.array([(1 - level) / 2, (1 + level) / 2]))
        return low, high

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return log p(y_n | x_n): the log density of given targets (log probability of class numbers)."""
        return self._standard_log_prob(self._standardised(y, "log_prob")) - self._log_volume

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Return P(Y_n <= y_n | x_n) at given targets, one output at a time: [N] or [N, outputs]."""
        self._require_order("cdf", "probabilities")
        return self._shaped(self._standard_cdf(self._standardised(y, "cdf")))

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return the continuous ranked probability score of given targets, one output at a time: [N] or [N, outputs].

        E|Y - y| - E|Y - Y'| / 2 for independent Y, Y' of this distribution, in the units of y: smaller is better, and
        |Y - y| where Y is certain. Exact for the Gaussian likelihood; for the others from 4096 values or more,
        within 0.005 standard deviations of Y.
        """
        self._require_order("crps", "log_prob")
        return self._shaped(self._scale * self._standard_crps(self._standardised(y, "crps")))

    def gaussian_components(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the means and the standard deviations of the Gaussians that y is a mixture of, with equal weights.

        Both are [components, N] or [components, N, outputs], noise and all. Only Gaussian noise has them; others raise
        an AttributeError.
        """
        mean, std = self._standard_components()
        return self._restored(mean), self._shaped(self._scale * std)

    def _standard_components(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the Gaussians that y is a mixture of, [components, N, outputs]; they are not always there."""
        raise AttributeError("gaussian_components: y is no mixture of Gaussians; use sample, quantile or cdf.")

    # --- information ----------------------------------------------------------------

    @cached_property
    def _entropies(self) -> Entropies:
        total, conditional = self._standard_entropies()
        return Entropies(total + self._log_volume, conditional + self._log_volume)

    @property
    def entropy(self) -> np.ndarray:
        """H[y | x] in nats (differential for continuous y; of all outputs together).

        Exact for classes and where y is Gaussian. For one output that mixes Gaussians by a fine grid over y, within
        0.001; otherwise by 16 nodes for every draw, within about 0.02 (at 128 draws).
        """
        return self._entropies.total

    @property
    def mutual_information(self) -> np.ndarray:
        """I[y; f | x] = H[y | x] - E H[y | f]: how much an observation here would tell of the function."""
        return np.maximum(self._entropies.total - self._entropies.conditional, 0.0)

    # --- functions and observations -------------------------------------------------

    def draws(self) -> np.ndarray:
        """Return the mean of y under every function draw, [S, N] or [S, N, outputs]: coherent over rows.

        Only this array and that of `sample` grow with draws times rows.
        """
        return self._restored(self._standard_draws())

    def sample(self, random_state: int) -> np.ndarray:
        """Return one observation y for every draw, noise and all, [S, N] or [S, N, outputs]."""
        y = self._standard_sample(np.random.default_rng(random_state))
        return y[..., 0] if self.is_classification else self._restored(y)

    # --- units ----------------------------------------------------------------------

    @property
    def _log_volume(self) -> float:
        """What standardising adds to a log density: the sum of log scale; nothing for classes."""
        return 0.0 if self.is_classification else float(np.sum(np.log(self._scale)))

    def _restored(self, standardised: np.ndarray) -> np.ndarray:
        """Return standardised values [..., outputs] in the units of the data."""
        return self._shaped(self._offset + self._scale * standardised)

    def _shaped(self, array: np.ndarray) -> np.ndarray:
        return array[..., 0] if self._flat and not self.is_classification else array

    def _standardised(self, y: np.ndarray, question: str) -> np.ndarray:
        """Return targets, as columns, in standardised units (class numbers as they are)."""
        y = np.asarray(y, np.float64)
        y = y[:, None] if y.ndim == 1 else y
        if y.shape[0] != len(self):
            raise ValueError(f"{question}: expected {len(self)} targets, one per row; got {y.shape[0]}.")
        if y.shape[1] != len(self._scale):
            raise ValueError(f"{question}: expected {len(self._scale)} column(s) of targets; got {y.shape[1]}.")
        return y if self.is_classification else (y - self._offset) / self._scale

    def _require_order(self, question: str, instead: str) -> None:
        if self.is_classification:
            raise AttributeError(f"{question}: classes have no order; use {instead}.")


def _require_finite(numbers: np.ndarray) -> None:
    """Raise an error if a prediction is not a number: the first row where that is so is named."""
    wrong = np.flatnonzero(~np.all(np.isfinite(numbers), axis=1))
    if len(wrong):
        raise ValueError(
            f"predict: the numbers at {len(wrong)} of {len(numbers)} rows are not finite, first at row {wrong[0]}. "
            "Either its inputs are too far from the data, or the numbers of the model do not fit together."
        )
