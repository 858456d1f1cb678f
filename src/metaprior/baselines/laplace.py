"""Linearised Laplace: train a plain network, then put a Gaussian around its weights. The evidence chooses its size."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import optax

from metaprior.baselines.laplace_evidence import Evidence, chunks
from metaprior.baselines.map import MAPMethod, MAPRegressor
from metaprior.compilation import as_float64, in_float64
from metaprior.estimators.base import Classifier, Regressor
from metaprior.estimators.checks import expect_one_of, expect_whole
from metaprior.estimators.config import NetworkConfig, TrainingConfig
from metaprior.estimators.documented import documented_like
from metaprior.estimators.metagp import MetaGPRegressor
from metaprior.estimators.method import NetworkMethod, Problem
from metaprior.estimators.renamed import accepts_old_names
from metaprior.estimators.stopping import as_numpy
from metaprior.inference.curvature import dense_gauss_newton, kronecker_factors
from metaprior.io.checkpoints import CheckpointConfig
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.weights import Laplace, Point, WeightModel
from metaprior.weights.laplace import Curvature, DenseCurvature, KroneckerCurvature, Weights

#: The number of weights up to which "auto" means "full".
FULL_WEIGHTS = 1500
STRUCTURES = ("auto", "full", "last_layer", "kronecker")


class LaplaceMethod(NetworkMethod):
    """A Gaussian around the weights of a network with point weights."""

    noise_hold = 0.0

    def __init__(self, point: MAPMethod, structure: str, n_predict_draws: int) -> None:
        """Keep the method that finds the point, and the structure of the curvature."""
        super().__init__(point.network, point.dtype)
        self.point, self.structure, self.n_predict_draws = point, structure, n_predict_draws

    def check(self) -> None:
        """Raise an error if a parameter is not as expected."""
        self.point.check()
        expect_whole("n_predict_draws", self.n_predict_draws, 2)
        expect_one_of("structure", self.structure, STRUCTURES)

    def start_noise(self, x: np.ndarray, targets: np.ndarray, hold: float) -> np.ndarray:
        """Return the starting value of a learned noise."""
        return self.point.start_noise(x, targets, hold)

    def initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        """Return random weights."""
        return self.point.initial_weights(network, problem, rng)

    def num_predict_draws(self, model: Model) -> int:
        """Return how many functions a prediction draws."""
        return int(self.n_predict_draws)

    def fit(self, problem: Problem, seed: int, checkpoint: CheckpointConfig | None = None) -> dict[str, Any]:
        """Train to the MAP weights, then compute the curvature there."""
        scale = self.point.scale_of_prior(problem.x.shape[1])
        if problem.last is not None:
            problem = problem._replace(last=_at_point(problem.last, scale))
        fit = self.point.train(self.point.job(problem, seed), problem, checkpoint)
        with in_float64():
            model = as_float64(fit.model)
            curvature = curvature_of(model, problem.x_unit, self.structure, problem.weight)
            rows = problem.x_unit, problem.targets
            evidence = Evidence(model, weights_of(model), *rows, curvature, problem.weight)
            log_precision, log_factor, log_evidence = evidence.best(-2 * np.log(scale))
            around = _around(model, curvature, log_precision, log_factor)
        attributes = self.point.attributes(fit._replace(model=as_numpy(around)), problem, seed)
        return {**attributes, "prior_precision_": float(np.exp(log_precision)), "log_evidence_": log_evidence}


def weights_of(model: Model) -> Weights:
    """Return the point weights of a model, or the centre of its Laplace posterior."""
    assert isinstance(model.weights, Point | Laplace)
    return tuple(model.weights.values)


def _at_point(model: Model, scale: float) -> Model:
    """Return the model with point weights at the centre of an earlier Laplace posterior."""
    return Model(Point(weights_of(model), scale), model.network, model.likelihood)


def _around(model: Model, curvature: Curvature, log_precision: float, log_factor: float) -> Model:
    """Return the Laplace model around a trained one, with the noise that the evidence chose."""
    likelihood = model.likelihood
    if isinstance(likelihood, Gaussian):
        likelihood = dataclasses.replace(likelihood, log_noise=np.asarray(likelihood.log_noise) + log_factor)
    weights = Laplace(weights_of(model), curvature, np.asarray(log_precision), np.asarray(log_factor))
    return Model(weights, model.network, likelihood)


def curvature_of(model: Model, x: np.ndarray, structure: str, weight: np.ndarray | None = None) -> Curvature:
    """Return the curvature H of all layers, or of the last one; a row counts `weight` times, or once."""
    weight = np.ones(len(x)) if weight is None else weight
    values = weights_of(model)
    shapes = [tuple(v.shape) for v in values]
    if structure == "auto":
        structure = "full" if sum(int(np.prod(s)) for s in shapes) <= FULL_WEIGHTS else "kronecker"
    if structure == "kronecker":
        return _kronecker(model, x, weight)
    free = len(values) - 1 if structure == "last_layer" else 0
    total = sum(
        np.asarray(dense_gauss_newton(model.network, model.likelihood, values, rows, free, each))
        for rows, each in zip(chunks(x), chunks(weight), strict=True)
    )
    eigenvalues, vectors = np.linalg.eigh(total)
    return DenseCurvature(np.maximum(eigenvalues, 0), vectors, tuple(shapes[free:]), tuple(shapes[:free]))


def _kronecker(model: Model, x: np.ndarray, weight: np.ndarray) -> KroneckerCurvature:
    values = weights_of(model)
    parts = [
        kronecker_factors(model.network, model.likelihood, values, rows, each)
        for rows, each in zip(chunks(x), chunks(weight), strict=True)
    ]
    inputs, outputs = ([sum(np.asarray(p[side][l]) for p in parts) for l in range(len(values))] for side in (0, 1))
    split_in = [np.linalg.eigh(a) for a in inputs]
    split_out = [np.linalg.eigh(g / np.sum(weight)) for g in outputs]
    return KroneckerCurvature(
        tuple(np.maximum(v, 0) for v, _ in split_in),
        tuple(u for _, u in split_in),
        tuple(np.maximum(v, 0) for v, _ in split_out),
        tuple(u for _, u in split_out),
    )


@accepts_old_names
@documented_like(MAPRegressor, MetaGPRegressor)
@dataclass(eq=False, repr=False)
class LaplaceRegressor(Regressor):
    """Regression by a network with a linearised Laplace posterior around its MAP weights.

    Some rows may be held out in training. The curvature is then computed on all rows, and the evidence of the
    linearised network chooses the precision of the prior and the noise.

    Parameters
    ----------
    structure : {"auto", "full", "last_layer", "kronecker"}, default="auto"
        The curvature of all weights together, that of the last layer alone, or one Kronecker product per layer. "auto"
        means "full" up to 1500 weights and "kronecker" beyond.
    prior_scale : float or "auto", default="auto"
        The standard deviation of the Gaussian prior in training; see `MAPRegressor`.

    Attributes
    ----------
    prior_precision_ : float
        The precision of the prior that the evidence chose.
    log_evidence_ : float
        The Laplace approximation of log p(y), for standardised targets.
    """

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    structure: str = "auto"
    prior_scale: float | str = "auto"
    input_scaling: str = "per_column"
    likelihood: str = "gaussian"
    noise: float | Sequence[float] | None = None
    noise_hold: float | None = None
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.003
    optimizer: optax.GradientTransformation | None = None
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

    def _method(self) -> LaplaceMethod:
        point = MAPMethod(NetworkConfig.of(self), TrainingConfig.of(self), self.prior_scale)
        return LaplaceMethod(point, self.structure, self.n_predict_draws)


@accepts_old_names
@documented_like(LaplaceRegressor)
@dataclass(eq=False, repr=False)
class LaplaceClassifier(Classifier):
    """Classification by a network with a linearised Laplace posterior; see `LaplaceRegressor`."""

    hidden_layer_sizes: Sequence[int] = (50,)
    activation: str | Callable[..., Any] = "tanh"
    _: KW_ONLY
    structure: str = "auto"
    prior_scale: float | str = "auto"
    input_scaling: str = "per_column"
    max_iter: int = 3000
    batch_size: int | str = "auto"
    learning_rate_init: float = 0.003
    optimizer: optax.GradientTransformation | None = None
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

    def _method(self) -> LaplaceMethod:
        point = MAPMethod(NetworkConfig.of(self), TrainingConfig.of(self), self.prior_scale)
        return LaplaceMethod(point, self.structure, self.n_predict_draws)
