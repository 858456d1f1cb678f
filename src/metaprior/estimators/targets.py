"""What an estimator is fitted to: numbers, counts or classes, and their way to functions and back.

A kind of target knows how targets are checked, in which units the functions are, and what functions say of the targets.
The likelihood, p(y | f), follows from it and from how the method starts the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from metaprior.estimators.checks import FARTHEST, expect, expect_one_of, in_units, is_number, standard_units
from metaprior.estimators.restored import check_units
from metaprior.likelihoods import (
    Bernoulli,
    Categorical,
    Gaussian,
    Heteroscedastic,
    Likelihood,
    OutputLikelihood,
    Poisson,
    StudentT,
)
from metaprior.predictive import Predictive
from metaprior.predictive.draws import FunctionDraws
from metaprior.predictive.mixture import predictive_of

#: The names of `likelihood`.
LIKELIHOODS = ("gaussian", "heteroscedastic", "student_t", "poisson")
#: The largest count: float64 has every whole number up to this one.
LARGEST_COUNT = 2.0**53


class NoiseStart(Protocol):
    """How a method starts the noise of a regression: its level, and the part of training for which it stays there."""

    @property
    def noise_hold(self) -> float:
        """The part of training for which a learned noise is held at its start, unless the user says it."""
        ...

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return where a learned noise starts, one value per target, for standardised targets."""
        ...


class Targets(Protocol):
    """A kind of target, once it has seen the targets of a fit."""

    def standardised(self, y: np.ndarray) -> np.ndarray:
        """Return targets in the units of the functions, [N, columns]."""
        ...

    def likelihood(self, x: np.ndarray, targets: np.ndarray, start: NoiseStart) -> Likelihood:
        """Return p(y | f) before training, for standardised targets."""
        ...

    def num_functions(self, likelihood: Likelihood) -> int:
        """Return how many functions the network has to give."""
        ...

    def predictive(self, draws: FunctionDraws) -> Predictive:
        """Return what functions say, in the units of the data."""
        ...

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that the targets leave on the estimator."""
        ...

    def check_restored(self) -> None:
        """Raise an error unless the attributes, which a file has restored, are such as a fit leaves."""
        ...

    def check_model(self, likelihood: Likelihood, num_outputs: int) -> None:
        """Raise an error unless a model with this likelihood and so many outputs predicts these targets."""
        ...


@dataclass(frozen=True)
class NoiseConfig:
    """The parameters of a regressor that say how targets vary around the function."""

    likelihood: str = "gaussian"
    noise: float | Sequence[float] | None = None
    noise_hold: float | None = None

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Self:
        """Read them from an estimator; one without a choice of likelihoods has Gaussian noise."""
        known = estimator.get_params(deep=False)
        return cls(**{name: known[name] for name in ("likelihood", "noise", "noise_hold") if name in known})

    def check(self) -> None:
        """Raise where a parameter is not as expected."""
        expect_one_of("likelihood", self.likelihood, LIKELIHOODS)
        hold = self.noise_hold
        expect("noise_hold", hold, "a number from 0 to 1, or None", hold is None or is_number(hold) and 0 <= hold <= 1)
        if self.likelihood == "heteroscedastic":
            what = "None with likelihood='heteroscedastic', which learns it"
            expect("noise", self.noise, what, self.noise is None)

    def fixed_noise(self, scale: np.ndarray) -> np.ndarray | None:
        """Return the noise of every target that the user gave, in units of the standard deviations; None: learned."""
        if self.noise is None:
            return None
        values: np.ndarray = np.atleast_1d(np.asarray(self.noise))
        fits = values.ndim == 1 and values.size in (1, len(scale))
        if not (fits and all(is_number(v) and v > 0 for v in values)):
            raise ValueError(f"noise: expected a positive number, or one per target; got {self.noise!r}.")
        with np.errstate(over="ignore"):
            relative = values.astype(np.float64) / scale
        if not np.all((relative >= 1 / FARTHEST) & (relative <= FARTHEST)):
            raise ValueError(
                f"noise: expected a number within a factor of {FARTHEST:g} of the standard deviation of the targets, "
                f"{scale}; got {self.noise!r}. It is in the units of the targets."
            )
        return relative


@dataclass(frozen=True)
class RegressionTargets:
    """Numbers, in one or several columns, standardised; or counts, which are left as they are."""

    offset: np.ndarray
    scale: np.ndarray
    flat: bool
    config: NoiseConfig

    @classmethod
    def of(cls, y: np.ndarray, config: NoiseConfig, last: Self | None = None, weight: np.ndarray | None = None) -> Self:
        """Look at the targets of a fit; one that goes on keeps the units of the last."""
        columns = y.reshape(len(y), -1)
        if config.likelihood == "poisson":
            _check_counts(columns)
        if last is None:
            return cls(*_units(columns, config.likelihood, weight), y.ndim == 1, config)
        if columns.shape[1] != len(last.scale):
            expected, got = len(last.scale), columns.shape[1]
            raise ValueError(f"warm_start: expected {expected} targets, as in the last fit; got {got}.")
        return cls(last.offset, last.scale, y.ndim == 1, config)

    def standardised(self, y: np.ndarray) -> np.ndarray:
        """Return (y - offset) / scale, [N, targets]."""
        return in_units(y.reshape(len(y), -1), self.offset, self.scale, "y")

    def likelihood(self, x: np.ndarray, targets: np.ndarray, start: NoiseStart) -> Likelihood:
        """Return the likelihood that was chosen; a learned noise starts where the method says."""
        kind, learned = self.config.likelihood, self.config.noise is None
        if kind == "poisson":
            return Poisson()
        hold = start.noise_hold if self.config.noise_hold is None else float(self.config.noise_hold)
        fixed = self.config.fixed_noise(self.scale)
        log_noise = np.log(start.start_noise(x, targets, hold) if fixed is None else fixed)
        if kind == "heteroscedastic":
            return Heteroscedastic.initial(log_noise, hold)
        if kind == "student_t":
            return StudentT(log_noise, np.asarray(np.log(3.0)), learned, hold)
        return Gaussian(log_noise, learned, hold)

    def num_functions(self, likelihood: Likelihood) -> int:
        """Return one function per target, or two where the noise is a function as well."""
        return likelihood.num_functions(len(self.scale))

    def predictive(self, draws: FunctionDraws) -> Predictive:
        """Return the distribution of y in its own units."""
        return predictive_of(draws, self.offset, self.scale, flat=self.flat)

    def attributes(self) -> dict[str, Any]:
        """Return the units of the targets, and whether they were a vector."""
        return {"y_offset_": self.offset, "y_scale_": self.scale, "_flat": self.flat}

    def check_restored(self) -> None:
        """Raise an error unless there is one offset and one scale per target, and one target if that is a vector."""
        self.config.check()
        check_units("y_offset_", self.offset, "y_scale_", self.scale, max(1, np.size(self.scale)))
        if not isinstance(self.flat, bool) or (self.flat and len(self.scale) != 1):
            raise ValueError(f"_flat: expected True or False, and False for several targets; got {self.flat!r}")

    def check_model(self, likelihood: Likelihood, num_outputs: int) -> None:
        """Raise an error unless the outputs are as many as the targets, and ordered."""
        if not isinstance(likelihood, OutputLikelihood) or num_outputs != len(self.scale):
            raise ValueError(f"expected a model of {len(self.scale)} targets; got one of {num_outputs} outputs")


def _units(columns: np.ndarray, likelihood: str, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the offset and the scale of every target; counts have none."""
    if likelihood == "poisson":
        return np.zeros(columns.shape[1]), np.ones(columns.shape[1])
    return standard_units(columns, "y", weight)


def _check_counts(columns: np.ndarray) -> None:
    if np.any(columns < 0) or np.any(columns != np.floor(columns)):
        raise ValueError("likelihood='poisson': expected counts (0, 1, 2, ...); y has other values.")
    if np.any(columns > LARGEST_COUNT):
        raise ValueError(
            f"likelihood='poisson': expected counts of at most 2**53, beyond which float64 does not have every whole "
            f"number; y has {np.max(columns):g}. Take likelihood='gaussian', or count in larger units."
        )


@dataclass(frozen=True)
class ClassTargets:
    """Labels. Two classes are told apart by one function (Bernoulli), more by one per class (categorical)."""

    classes: np.ndarray

    @classmethod
    def of(cls, name: str, y: Any, last: Self | None = None) -> Self:
        """Look at the labels of a fit; one that goes on must have the classes of the last."""
        check_classification_targets(y)
        classes = np.unique(column_or_1d(y, warn=True))
        if len(classes) < 2:
            raise ValueError(f"{name}: expected at least two classes; y has one class, {classes.tolist()[0]!r}.")
        if last is not None and not np.array_equal(classes, last.classes):
            raise ValueError(f"warm_start: expected the classes of the last fit, {last.classes}; got {classes}.")
        return cls(classes)

    def standardised(self, y: np.ndarray) -> np.ndarray:
        """Return the number of every label among the classes, [N, 1]."""
        return np.searchsorted(self.classes, column_or_1d(y))[:, None].astype(np.float64)

    def likelihood(self, x: np.ndarray, targets: np.ndarray, start: NoiseStart) -> Likelihood:
        """Return the Bernoulli or the categorical likelihood: neither has noise."""
        return Bernoulli() if len(self.classes) == 2 else Categorical()

    def num_functions(self, likelihood: Likelihood) -> int:
        """Return one function for two classes, and one per class for more."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def predictive(self, draws: FunctionDraws) -> Predictive:
        """Return the class probabilities."""
        return predictive_of(draws, np.zeros(1), np.ones(1), flat=True, classes=self.classes)

    def attributes(self) -> dict[str, Any]:
        """Return the classes."""
        return {"classes_": self.classes}

    def check_restored(self) -> None:
        """Raise an error unless there are two classes or more, in order and all different."""
        classes = self.classes
        fits = isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= 2
        if not fits or not np.array_equal(np.unique(classes), classes):
            raise ValueError("classes_: expected two or more different classes, in order")

    def check_model(self, likelihood: Likelihood, num_outputs: int) -> None:
        """Raise an error unless there is a probability for every class."""
        if not isinstance(likelihood, Categorical) or num_outputs != len(self.classes):
            raise ValueError(f"expected a model of {len(self.classes)} classes; got one of {num_outputs} outputs")
