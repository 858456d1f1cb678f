"""The parameters that network estimators have in common, read from an estimator and checked.

An estimator lists all of its parameters in its own signature. What builds and trains a model wants them by concern: the
network, and its training. Each group is a frozen dataclass whose fields have the names of the parameters.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import optax
from jax.sharding import Mesh
from sklearn.base import BaseEstimator

from metaprior.estimators.checks import expect, expect_auto_or_whole, expect_whole, is_number, is_whole
from metaprior.inference import row_mesh

#: The float types that training knows.
DTYPES = ("float32", "float64")
#: Rows up to which every step sees all data, and rows of a batch beyond that.
FULL_BATCH, AUTO_BATCH = 512, 256
#: Rows from which on `early_stopping="auto"` holds some out: of fewer, all are needed and a tenth says little.
AUTO_HOLDS_OUT = 50


@dataclass(frozen=True)
class Config:
    """A group of parameters."""

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Self:
        """Read the group from an estimator that has parameters of these names."""
        parameters = estimator.get_params(deep=False)
        return cls(**{field.name: parameters[field.name] for field in dataclasses.fields(cls)})


@dataclass(frozen=True)
class NetworkConfig(Config):
    """The architecture, and how inputs are standardised."""

    hidden_layer_sizes: Sequence[int]
    activation: str | Callable[..., Any]
    input_scaling: str

    @property
    def hidden(self) -> list[int]:
        """The number of units of every hidden layer."""
        return np.atleast_1d(np.asarray(self.hidden_layer_sizes, dtype=int)).tolist()

    @property
    def num_layers(self) -> int:
        """The number of layers of weights."""
        return len(self.hidden) + 1

    def check(self) -> None:
        """Raise where a parameter is not as expected."""
        hidden = np.atleast_1d(np.asarray(self.hidden_layer_sizes))
        whole = hidden.size == 0 or (np.issubdtype(hidden.dtype, np.integer) and hidden.min() >= 1)
        fits = bool(hidden.ndim == 1 and whole)
        expect("hidden_layer_sizes", self.hidden_layer_sizes, "whole numbers of at least 1", fits)
        known = self.input_scaling in ("per_column", "joint")
        expect("input_scaling", self.input_scaling, "'per_column' or 'joint'", known)


@dataclass(frozen=True)
class TrainingConfig(Config):
    """How the ELBO is maximised."""

    max_iter: int
    batch_size: int | str
    learning_rate_init: float | str
    optimizer: optax.GradientTransformation | None
    early_stopping: bool | str
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    dtype: str
    devices: int | str | None
    verbose: bool | int

    @property
    def mesh(self) -> Mesh | None:
        """The devices that the rows of a step are spread over; None for one device."""
        return None if self.devices is None else row_mesh(None if self.devices == "all" else int(self.devices))

    def rows_of_a_step(self, num_rows: int) -> int | None:
        """Return the size of a batch; None where a step sees all rows."""
        if self.batch_size == "auto":
            return None if num_rows <= FULL_BATCH else AUTO_BATCH
        return None if int(self.batch_size) >= num_rows else int(self.batch_size)

    def holds_out(self, num_rows: int) -> bool:
        """Return whether some rows are held out, to end the run early."""
        return num_rows >= AUTO_HOLDS_OUT if self.early_stopping == "auto" else bool(self.early_stopping)

    def check(self, *, auto_rate: bool = False, auto_dtype: bool = False) -> None:
        """Raise where a parameter is not as expected; a rate or a float type may be left to the method."""
        for name in ("max_iter", "n_iter_no_change"):
            expect_whole(name, vars(self)[name], 1)
        expect_auto_or_whole("batch_size", self.batch_size)
        rate, fraction, early = self.learning_rate_init, self.validation_fraction, self.early_stopping
        if not (auto_rate and is_auto(rate)):
            expect("learning_rate_init", rate, "a positive number", is_number(rate) and float(rate) > 0)
        expect("tol", self.tol, "a number of at least 0", is_number(self.tol) and self.tol >= 0)
        within = is_number(fraction) and 0 < fraction < 1
        expect("validation_fraction", fraction, "a number between 0 and 1", within)
        expect("early_stopping", early, "True, False or 'auto'", isinstance(early, bool | np.bool_) or is_auto(early))
        known = ("auto", *DTYPES) if auto_dtype else DTYPES
        expect("dtype", self.dtype, " or ".join(f"'{name}'" for name in known), self.dtype in known)
        some = self.devices is None or self.devices == "all" or (is_whole(self.devices) and int(self.devices) >= 1)
        expect("devices", self.devices, "None, a number of devices or 'all'", some)
        optimizer = self.optimizer
        is_optax = optimizer is None or isinstance(optimizer, optax.GradientTransformation)
        expect("optimizer", optimizer, "an optax optimizer, or None for Adam", is_optax)


@dataclass(frozen=True)
class DrawsConfig(Config):
    """How often a posterior is drawn from, in a step of training and in a prediction; a point has one draw."""

    n_train_draws: int = 1
    n_predict_draws: int = 1

    def check(self) -> None:
        """Raise where a parameter is not as expected."""
        expect_whole("n_train_draws", self.n_train_draws, 1)
        expect_whole("n_predict_draws", self.n_predict_draws, 2)


def is_auto(value: Any) -> bool:
    """Return whether a parameter is left to the estimator."""
    return isinstance(value, str) and value == "auto"
