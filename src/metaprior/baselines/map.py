"""MAP: a plain network whose weights are a point estimate under a Gaussian prior."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import optax

from metaprior.estimators.base import Classifier, Regressor
from metaprior.estimators.checks import expect, is_number
from metaprior.estimators.config import NetworkConfig, TrainingConfig, is_auto
from metaprior.estimators.documented import documented_like
from metaprior.estimators.metagp import MetaGPRegressor
from metaprior.estimators.method import START_NOISE, Problem, TrainedMethod
from metaprior.estimators.renamed import accepts_old_names
from metaprior.inference import Recipe
from metaprior.networks import Dense
from metaprior.weights import Point, WeightModel

#: With "auto", the prior standard deviation of the first pre-activations for a few standardised inputs. With 1, a
#: function that bends often in its one input needs weights so improbable that its signal is taken for noise.
SPREAD = 3.0


def all_let_in(recipe: Recipe) -> Recipe:
    """Return the recipe for point weights. Nothing is drawn, so random normals and KL need no slow start."""
    return recipe._replace(normals_start=-1.0, normals_full=0.0, kl_starts=-1.0, kl_full=0.0)


def noise_of_points(targets: np.ndarray, hold: float) -> np.ndarray:
    """Return the noise at which training of point weights starts: the standard deviation of the targets.

    From a small start the noise needs a few hundred steps to rise, and meanwhile a network fits the noise of a small
    table. Only a noise that is to be held starts small.
    """
    return np.full(targets.shape[1], 1.0 if hold == 0 else START_NOISE)


def expect_positive(name: str, value: object) -> None:
    """Raise an error unless the parameter is a positive number."""
    expect(name, value, "a positive number", is_number(value) and value > 0)


class MAPMethod(TrainedMethod):
    """A network whose weights are points under the prior N(0, prior_scale^2)."""

    #: By default, the noise is learned from the first step.
    noise_hold = 0.0

    def __init__(self, network: NetworkConfig, training: TrainingConfig, prior_scale: float | str) -> None:
        """Keep the parameters."""
        super().__init__(network, training)
        self.prior_scale = prior_scale

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        super().check()
        if not is_auto(self.prior_scale):
            scale, what = self.prior_scale, "'auto' or a positive number"
            expect("prior_scale", scale, what, is_number(scale) and scale > 0)

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return the starting value of a learned noise."""
        return noise_of_points(targets, hold)

    def scale_of_prior(self, num_features: int) -> float:
        """Return the standard deviation of the prior of a weight."""
        return max(1.0, SPREAD / num_features**0.5) if is_auto(self.prior_scale) else float(self.prior_scale)

    def initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        """Return random weights."""
        return Point.initial(network, rng, self.scale_of_prior(problem.x.shape[1]))

    def recipe(self, problem: Problem) -> Recipe:
        """Return the recipe of training."""
        return all_let_in(super().recipe(problem))


@accepts_old_names
@documented_like(MetaGPRegressor)
@dataclass(eq=False, repr=False)
class MAPRegressor(Regressor):
    """Regression by a network with point weights under a Gaussian prior.

    Its only uncertainty is the observation noise: the epistemic variance and the mutual information are 0. A wide prior
    hardly keeps such a network from fitting the noise. If it can fit every target exactly, the joint maximum over
    weights and noise level is degenerate. So by default some rows are held out, and the weights that do best on them
    are kept.

    Parameters
    ----------
    prior_scale : float or "auto", default="auto"
        The standard deviation of the prior of every weight, for standardised inputs and targets. "auto" means 3 divided
        by the square root of the number of features, but at least 1.
    early_stopping : bool or "auto", default="auto"
        Whether to hold out `validation_fraction` of the rows, to stop when their log likelihood has not risen by `tol`
        for `n_iter_no_change` checks, and to keep the weights and the noise of the best check. There is a check every
        100 steps. "auto" does so from 50 rows on. Without early stopping, a network fits all targets of a small noisy
        table, and its noise level falls to zero.
    n_iter_no_change : int, default=10
        The number of checks without a rise after which training stops.
    noise_hold : float, default=None
        The fraction of training for which a learned noise level is held at a small start. With None it is learned from
        the first step and starts at the standard deviation of the targets.
    max_iter : int, default=3000
        The largest number of optimizer steps.
    batch_size : int or "auto", default="auto"
        The number of rows per step. "auto" means all rows up to 512, and 256 beyond.
    learning_rate_init : float, default=0.003
        The step size of Adam. It is small because on a noisy table the best weights come within a few hundred steps.
    dtype : {"float32", "float64"}, default="float32"
        The type that training computes in; predictions are float64.
    """

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    prior_scale: float | str = "auto"
    input_scaling: str = "per_column"
    likelihood: str = "gaussian"
    noise: float | Sequence[float] | None = None
    noise_hold: float | None = None
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.003
    optimizer: optax.GradientTransformation | None = None
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 0.0
    warm_start: bool = False
    dtype: str = "float32"
    devices: int | str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> MAPMethod:
        return MAPMethod(NetworkConfig.of(self), TrainingConfig.of(self), self.prior_scale)


@accepts_old_names
@documented_like(MAPRegressor)
@dataclass(eq=False, repr=False)
class MAPClassifier(Classifier):
    """Classification by a network with point weights under a Gaussian prior; see `MAPRegressor`."""

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    prior_scale: float | str = "auto"
    input_scaling: str = "per_column"
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.003
    optimizer: optax.GradientTransformation | None = None
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 0.0
    warm_start: bool = False
    dtype: str = "float32"
    devices: int | str | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: bool | int = False

    def _method(self) -> MAPMethod:
        return MAPMethod(NetworkConfig.of(self), TrainingConfig.of(self), self.prior_scale)
