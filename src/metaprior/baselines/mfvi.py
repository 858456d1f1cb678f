"""BNN-MFVI: the usual Bayesian network, with a normal prior and an independent Gaussian posterior for every weight."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import optax

from metaprior.baselines.map import MAPRegressor, expect_positive
from metaprior.baselines.measured_noise import held_noise
from metaprior.estimators.base import Classifier, Regressor
from metaprior.estimators.config import DrawsConfig, NetworkConfig, TrainingConfig
from metaprior.estimators.documented import documented_like
from metaprior.estimators.metagp import MetaGPRegressor
from metaprior.estimators.method import Problem, TrainedMethod
from metaprior.estimators.renamed import accepts_old_names
from metaprior.networks import Dense
from metaprior.weights import MeanField, WeightModel


class MFVIMethod(TrainedMethod):
    """A network with an independent Gaussian for every weight."""

    def __init__(
        self, network: NetworkConfig, training: TrainingConfig, draws: DrawsConfig, prior_scale: float
    ) -> None:
        """Keep the parameters."""
        super().__init__(network, training, draws)
        self.prior_scale = prior_scale

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        super().check()
        expect_positive("prior_scale", self.prior_scale)

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return the starting value of a learned noise."""
        return held_noise(x, targets)

    def initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        """Return random means with small variances."""
        return MeanField.initial(network, rng, float(self.prior_scale))


@accepts_old_names
@documented_like(MAPRegressor, MetaGPRegressor)
@dataclass(eq=False, repr=False)
class MFVIRegressor(Regressor):
    """Regression by a Bayesian network with a mean-field Gaussian posterior.

    Training draws pre-activations (local reparameterisation), and prediction draws weights.

    Parameters
    ----------
    prior_scale : float, default=1.0
        The standard deviation of the prior of every weight, for standardised inputs and targets.
    noise_hold : float, default=None
        The fraction of training for which a learned noise level is held at its start, which is half of what
        neighbouring rows differ by. None means 0.8.
    max_iter : int, default=3000
        The number of optimizer steps.
    learning_rate_init : float, default=0.01
        The step size of Adam.
    early_stopping : bool or "auto", default=False
        Whether to hold out `validation_fraction` of the rows, and to stop when their log likelihood has not risen by
        `tol` for `n_iter_no_change` checks. There is a check every 100 steps. "auto" does so from 50 rows on.
    n_iter_no_change : int, default=5
        The number of checks without a rise after which training stops.
    n_train_draws : int, default=4
        The number of draws per step.
    n_predict_draws : int, default=128
        The number of draws that a prediction averages over. They are fixed when the fit ends.
    """

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    prior_scale: float = 1.0
    input_scaling: str = "per_column"
    likelihood: str = "gaussian"
    noise: float | Sequence[float] | None = None
    noise_hold: float | None = None
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.01
    optimizer: optax.GradientTransformation | None = None
    n_train_draws: int = 4
    n_predict_draws: int = 128
    early_stopping: bool | str = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    tol: float = 0.0
    warm_start: bool = False
    dtype: str = "float32"
    devices: int | str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> MFVIMethod:
        return MFVIMethod(NetworkConfig.of(self), TrainingConfig.of(self), DrawsConfig.of(self), self.prior_scale)


@accepts_old_names
@documented_like(MFVIRegressor)
@dataclass(eq=False, repr=False)
class MFVIClassifier(Classifier):
    """Classification by a Bayesian network with a mean-field Gaussian posterior; see `MFVIRegressor`."""

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    prior_scale: float = 1.0
    input_scaling: str = "per_column"
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.01
    optimizer: optax.GradientTransformation | None = None
    n_train_draws: int = 4
    n_predict_draws: int = 128
    early_stopping: bool | str = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    tol: float = 0.0
    warm_start: bool = False
    dtype: str = "float32"
    devices: int | str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> MFVIMethod:
        return MFVIMethod(NetworkConfig.of(self), TrainingConfig.of(self), DrawsConfig.of(self), self.prior_scale)
