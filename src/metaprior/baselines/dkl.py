"""DKL: deep kernel learning. A network gives features, sparse GPs on them give the outputs, and both train together."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import optax

from metaprior import kernels
from metaprior.baselines.map import MAPRegressor, all_let_in, expect_positive, noise_of_points
from metaprior.baselines.mfvi import MFVIRegressor
from metaprior.estimators.base import Classifier, Regressor
from metaprior.estimators.checks import expect_auto_or_whole
from metaprior.estimators.config import Config, DrawsConfig, NetworkConfig, TrainingConfig
from metaprior.estimators.documented import documented_like
from metaprior.estimators.metagp_prior import JITTER
from metaprior.estimators.method import Problem, TrainedMethod
from metaprior.estimators.renamed import accepts_old_names
from metaprior.inference import Fit, Recipe
from metaprior.kernels import Kernel
from metaprior.kernels.stationary import Stationary
from metaprior.networks import Dense
from metaprior.user_warnings import warn_user
from metaprior.weights import DeepKernel, WeightModel

#: The median distance of features, in lengthscales, beyond which a fit warns.
FAR = 4.0
#: The default number of inducing points per output.
NUM_INDUCING = 50


@dataclass(frozen=True)
class DKLConfig(Config):
    """The parameters of the GPs on the features, and of the network's prior."""

    kernel: Kernel | str | None
    n_inducing: int | str
    prior_scale: float

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        expect_auto_or_whole("n_inducing", self.n_inducing)
        expect_positive("prior_scale", self.prior_scale)


class DKLMethod(TrainedMethod):
    """Sparse variational GPs on the features of a network with point weights."""

    noise_hold = 0.0

    def __init__(self, config: DKLConfig, network: NetworkConfig, training: TrainingConfig, draws: DrawsConfig) -> None:
        """Keep the parameters."""
        super().__init__(network, training, draws)
        self.config = config

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        super().check()
        self.config.check()

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return the starting value of a learned noise."""
        return noise_of_points(targets, hold)

    def recipe(self, problem: Problem) -> Recipe:
        """Return the recipe of training."""
        return all_let_in(super().recipe(problem))

    def initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        """Return a random network, and GPs whose inducing points are the features of some rows."""
        config = self.config
        kernel = kernels.RBF() if config.kernel is None else kernels.named(config.kernel, "kernel")
        if kernel.unknown_periods():
            raise ValueError("kernel: expected a period, in units of the features, because the data do not show it.")
        usual = min(NUM_INDUCING, problem.num_rows)
        return DeepKernel.initial(
            network,
            kernel,
            usual if config.n_inducing == "auto" else int(config.n_inducing),
            problem.x_unit,
            rng,
            prior_scale=float(config.prior_scale),
            jitter=JITTER[self.dtype],
        )

    def attributes(self, fit: Fit, problem: Problem, seed: int) -> dict[str, Any]:
        """Return the fitted attributes, and warn if the features lie far apart."""
        attributes = super().attributes(fit, problem, seed)
        _warn_of_far_features(attributes["model_"].weights)
        return attributes


def _warn_of_far_features(weights: DeepKernel) -> None:
    """Warn if features lie so many lengthscales apart that the GP learns nothing between the data."""
    kernel = weights.gps.kernel
    if not isinstance(kernel, Stationary) or not weights.values:
        return
    for points, lengthscale in zip(weights.gps.points, np.asarray(kernel.lengthscale), strict=True):
        scaled = np.asarray(points, np.float64) / lengthscale
        distance = np.sqrt(np.sum((scaled[:, None] - scaled[None]) ** 2, axis=-1))
        median = float(np.median(distance[np.triu_indices(len(scaled), 1)])) if len(scaled) > 1 else 0.0
        if median > FAR:
            warn_user(
                f"the features of the data lie {median:.1f} lengthscales apart (median distance): between them the GP "
                "knows nothing. Use a smaller prior_scale, or fewer units in the last of hidden_layer_sizes.",
                once="far features",
            )
            return


@accepts_old_names
@documented_like(MAPRegressor, MFVIRegressor)
@dataclass(eq=False, repr=False)
class DKLRegressor(Regressor):
    """Regression by sparse variational GPs on the features of a network, trained together.

    The features are the values of the last hidden layer. With `hidden_layer_sizes=()` they are the inputs themselves,
    and the model is a sparse GP. The point weights of the network can overfit, so some rows are held out.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        The kernel on the features; None means an RBF kernel. Every output has its own hyper-parameters.
    n_inducing : int or "auto", default="auto"
        The number of inducing points per output. "auto" means 50, but not more than there are rows.
    prior_scale : float, default=1.0
        The standard deviation of the Gaussian prior of the weights of the network.
    """

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    kernel: Kernel | str | None = None
    n_inducing: int | str = "auto"
    prior_scale: float = 1.0
    input_scaling: str = "per_column"
    likelihood: str = "gaussian"
    noise: float | Sequence[float] | None = None
    noise_hold: float | None = None
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.003
    optimizer: optax.GradientTransformation | None = None
    n_train_draws: int = 4
    n_predict_draws: int = 128
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 0.0
    warm_start: bool = False
    dtype: str = "float32"
    devices: int | str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> DKLMethod:
        return DKLMethod(DKLConfig.of(self), NetworkConfig.of(self), TrainingConfig.of(self), DrawsConfig.of(self))


@accepts_old_names
@documented_like(DKLRegressor)
@dataclass(eq=False, repr=False)
class DKLClassifier(Classifier):
    """Classification by sparse variational GPs, one per class, on the features of a network; see `DKLRegressor`."""

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    kernel: Kernel | str | None = None
    n_inducing: int | str = "auto"
    prior_scale: float = 1.0
    input_scaling: str = "per_column"
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.003
    optimizer: optax.GradientTransformation | None = None
    n_train_draws: int = 4
    n_predict_draws: int = 128
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 0.0
    warm_start: bool = False
    dtype: str = "float32"
    devices: int | str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> DKLMethod:
        return DKLMethod(DKLConfig.of(self), NetworkConfig.of(self), TrainingConfig.of(self), DrawsConfig.of(self))
