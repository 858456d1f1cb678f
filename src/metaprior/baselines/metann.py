"""MetaNN: the predecessor of MetaGP, in which a small network instead of a GP maps codes to weights."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import optax

from metaprior.baselines.measured_noise import held_noise
from metaprior.baselines.mfvi import MFVIRegressor
from metaprior.estimators.base import Classifier, Regressor
from metaprior.estimators.checks import expect_one_of, expect_whole
from metaprior.estimators.config import Config, DrawsConfig, NetworkConfig, TrainingConfig
from metaprior.estimators.documented import documented_like
from metaprior.estimators.method import Problem, TrainedMethod
from metaprior.estimators.renamed import accepts_old_names
from metaprior.networks import Dense
from metaprior.weights import MetaNN, WeightModel

#: The distributions of a weight given its code.
NOISES = ("gaussian", "implicit")


@dataclass(frozen=True)
class MetaNNConfig(Config):
    """The parameters of the small network from codes to weights."""

    latent_dim: int
    mapping_units: int
    weight_noise: str

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        expect_whole("latent_dim", self.latent_dim, 1)
        expect_whole("mapping_units", self.mapping_units, 1)
        expect_one_of("weight_noise", self.weight_noise, NOISES)


class MetaNNMethod(TrainedMethod):
    """A network whose weights come from a small network on their codes."""

    def __init__(
        self, config: MetaNNConfig, network: NetworkConfig, training: TrainingConfig, draws: DrawsConfig
    ) -> None:
        """Keep the parameters."""
        super().__init__(network, training, draws)
        self.config = config

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        super().check()
        self.config.check()

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return the starting value of a learned noise."""
        return held_noise(x, targets)

    def initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        """Return a small network with random weights."""
        config, implicit = self.config, self.config.weight_noise == "implicit"
        return MetaNN.initial(network, int(config.latent_dim), int(config.mapping_units), rng, implicit=implicit)


@accepts_old_names
@documented_like(MFVIRegressor)
@dataclass(eq=False, repr=False)
class MetaNNRegressor(Regressor):
    """Regression by a network whose weights come from a small network on their codes.

    Parameters
    ----------
    latent_dim : int, default=2
        Size of each unit's latent vector.
    mapping_units : int, default=64
        Number of hidden units of the network from code to weight.
    weight_noise : {"gaussian", "implicit"}, default="gaussian"
        Whether a weight given its code is Gaussian, or the network from code to weight has a random input.
    """

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    latent_dim: int = 2
    mapping_units: int = 64
    weight_noise: str = "gaussian"
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

    def _method(self) -> MetaNNMethod:
        return MetaNNMethod(
            MetaNNConfig.of(self), NetworkConfig.of(self), TrainingConfig.of(self), DrawsConfig.of(self)
        )


@accepts_old_names
@documented_like(MetaNNRegressor)
@dataclass(eq=False, repr=False)
class MetaNNClassifier(Classifier):
    """Classification by a network whose weights come from a small network on their codes; see `MetaNNRegressor`."""

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    latent_dim: int = 2
    mapping_units: int = 64
    weight_noise: str = "gaussian"
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

    def _method(self) -> MetaNNMethod:
        return MetaNNMethod(
            MetaNNConfig.of(self), NetworkConfig.of(self), TrainingConfig.of(self), DrawsConfig.of(self)
        )
