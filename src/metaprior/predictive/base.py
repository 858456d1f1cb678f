"""What `predict_distribution` returns: the predictive distribution, in the units of the data.

`Predictive` has every public method. A final class beside it says how the distribution is computed, in standardised
units: by mixing draws of functions (`mixture`) or in closed form (`gaussian`).
"""

import abc
import importlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np

from metaprior.predictive.classes import class_numbers, shown_labels
from metaprior.predictive.frames import to_frame
from metaprior.predictive.limits import counted, require_finite, require_room
from metaprior.predictive.selection import row_numbers

if TYPE_CHECKING:
    import pandas as pd

#: The levels of the quantiles in a table.
FRAME_LEVELS = (0.025, 0.5, 0.975)


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
    first asked for. `predicted[10:20]`, a mask or an array of row numbers selects rows; what is known of them is kept.

    Parameters
    ----------
    offset, scale : array
        y = offset + scale * (standardised y), one number per output.
    flat : bool
        Whether the targets were a vector.
    classes : array, default=None
        The labels of classes, in the order of their numbers; None for the numbers themselves, and for regression.
    """

    #: The inputs that were asked about, in the units of the data, and their labels in a data frame; None: not known.
    inputs: np.ndarray | None = None
    index: Any = None

    def __init__(self, offset: np.ndarray, scale: np.ndarray, *, flat: bool, classes: np.ndarray | None = None) -> None:
        self._offset, self._scale = np.asarray(offset, np.float64), np.asarray(scale, np.float64)
        self._flat, self._classes = flat, classes

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

    @abc.abstractmethod
    def _standard_covariance(self) -> np.ndarray:
        """Return the covariance of E[y | f] over the rows, one output at a time, [outputs, N, N]."""

    @abc.abstractmethod
    def _standard_joint_log_prob(self, y: np.ndarray) -> float:
        """Return the log density of targets [N, outputs] of all rows and outputs together."""

    @abc.abstractmethod
    def _at_rows(self, rows: np.ndarray) -> Self:
        """Return the distribution at some of the rows, with what has been computed for them."""

    # --- rows -----------------------------------------------------------------------

    def __getitem__(self, rows: Any) -> Self:
        """Return the distribution at some of the rows: a slice, a mask, an array of numbers, or one number."""
        chosen = row_numbers(rows, len(self))
        part = self._at_rows(chosen)
        part.inputs = None if self.inputs is None else self.inputs[chosen]
        part.index = None if self.index is None else self.index[chosen]
        for name in ("_moments", "_entropies"):
            if name in vars(self):
                known = vars(self)[name]
                vars(part)[name] = type(known)(*[values[chosen] for values in known])
        return part

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse: a distribution is not one array."""
        raise TypeError("a predictive distribution is not one array; take mean, std, probabilities or draws().")

    def __repr__(self) -> str:
        """Show what it is, without computing anything."""
        draws = f"{self.num_draws} draws"
        return f"<{type(self).__name__}: {self._kind()}, {counted(len(self), 'row')}, {draws}, {self._range()}>"

    def _kind(self) -> str:
        if not self.is_classification:
            return f"regression of {counted(len(self._scale), 'target')}"
        return "classes" if self._classes is None else f"classes {shown_labels(self._classes)}"

    def _range(self) -> str:
        what = "probabilities" if self.is_classification else "means"
        if "_moments" not in vars(self):
            return f"{what} not computed yet"
        return f"{what} from {np.min(self.mean):.4g} to {np.max(self.mean):.4g}"

    # --- moments --------------------------------------------------------------------

    @cached_property
    def _moments(self) -> Moments:
        mean, epistemic, aleatoric = self._standard_moments()
        require_finite(mean + epistemic + aleatoric)
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

    @property
    def classes(self) -> np.ndarray:
        """The labels of the classes, in the order of the columns of `probabilities`."""
        if not self.is_classification:
            raise AttributeError("classes: this is a regression; it has none.")
        return np.arange(self.probabilities.shape[1]) if self._classes is None else self._classes

    def covariance(self, *, noise: bool = False) -> np.ndarray:
        """Return the joint covariance of the functions over all rows: of E[y | f] for functions f of the posterior.

        Its diagonal is `epistemic_variance`. Exact where the functions are Gaussian, or a mixture of Gaussians (an
        integrated output layer with Gaussian noise, an exact GP); otherwise that of `draws()`.

        Parameters
        ----------
        noise : bool, default=False
            Whether to add `aleatoric_variance` to the diagonal, which makes this the covariance of observations.

        Returns
        -------
        ndarray of shape (N, N), or (N, N, outputs) for several targets and for classes, each with its own
        """
        require_room("covariance", len(self), self.mean.size // len(self))
        found = self._standard_covariance() * self._scale[:, None, None] ** 2
        found = 0.5 * (found + np.swapaxes(found, 1, 2))
        if noise:
            each = np.arange(len(self))
            found[:, each, each] += self.aleatoric_variance.reshape(len(self), -1).T
        return self._shaped(np.moveaxis(found, 0, -1))

    # --- quantiles and densities ----------------------------------------------------

    def quantile(self, q: float | np.ndarray) -> np.ndarray:
        """Return quantiles of y, [N] or [N, outputs]; several levels come first: [levels, N, ...]."""
        levels = np.atleast_1d(np.asarray(q, np.float64))
        self._require_order("quantile", "probabilities")
        if not np.all((levels > 0) & (levels < 1)):
            raise ValueError(f"quantile: levels must lie strictly between 0 and 1, such as 0.5; got {q!r}.")
        found = np.stack([self._restored(self._standard_quantile(level)) for level in levels])
        return found[0] if np.ndim(q) == 0 else found

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the central interval that holds y with probability `level`."""
        if not (np.ndim(level) == 0 and 0 < level < 1):
            raise ValueError(f"interval: expected a level between 0 and 1, such as 0.95; got {level!r}.")
        low, high = self.quantile(np.array([(1 - level) / 2, (1 + level) / 2]))
        return low, high

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return log p(y_n | x_n), [N]: the log density of given targets, all outputs together.

        For classes, it is the log probability of the given labels, which are those of `classes`. If these are no
        numbers (words, for instance), class numbers from 0 on are understood as well.
        """
        return self._standard_log_prob(self._standardised(y, "log_prob")) - self._log_volume

    def joint_log_prob(self, y: np.ndarray) -> float:
        """Return log p(y_1, ..., y_N | x_1, ..., x_N): the log density of the targets of all rows together.

        Rows are dependent, because one function gave rise to all of them; the sum of `log_prob` ignores that. Exact for
        a mixture of Gaussian processes: the log of the mean of their densities. Otherwise it is the log of the mean
        over `draws()`, which is too low for many rows, as no drawn function is close to all of them.
        """
        targets = self._standardised(y, "joint_log_prob")
        return float(self._standard_joint_log_prob(targets)) - len(self) * self._log_volume

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
        return self.classes[y[..., 0].astype(int)] if self.is_classification else self._restored(y)

    # --- tables and plots -----------------------------------------------------------

    def to_frame(
        self,
        levels: Sequence[float] = FRAME_LEVELS,
        *,
        index: Any = None,
        targets: Sequence[str] | None = None,
    ) -> "pd.DataFrame":
        """Return a table with one row per row; needs pandas.

        Parameters
        ----------
        levels : sequence of float, default=(0.025, 0.5, 0.975)
            The quantiles of a regression.
        index : array-like, default=None
            The labels of the rows. None takes those of the data frame that was asked about, or 0, 1, ...
        targets : sequence of str, default=None
            The names of several targets; None is 0, 1, ...

        Returns
        -------
        pandas.DataFrame
            For regression: `mean`, `std`, `epistemic_std` (what more data would remove), `aleatoric_std` (the noise),
            and quantiles such as `q0.025`. With several targets the columns have two levels: (target, "mean"). For
            classes: `class` (the most probable), `p_<label>` for every label, `entropy` and `mutual_information`.
        """
        return to_frame(self, levels, index, targets)

    def plot(self, y: Any = None, **options: Any) -> Any:
        """Plot the distribution, with the targets `y` if they are known; needs matplotlib.

        With one input column this is the function: mean, intervals and draws. Otherwise it is the calibration if `y` is
        given, and the sorted intervals of the rows if not. `kind=` chooses; the options are those of
        `metaprior.plots.plot_predictive`. Returns the axes of matplotlib.
        """
        # by its name: nothing below the estimators depends on matplotlib, and who asks for no plot imports none
        return importlib.import_module("metaprior.plots").plot_predictive(self, y, **options)

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
        """Return targets, as columns, in standardised units; class numbers for labels."""
        if self.is_classification:
            y = class_numbers(self.classes, y, question)
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
