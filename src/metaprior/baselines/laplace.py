"""Linearised Laplace: train a plain network, then put a Gaussian around its weights, sized by the evidence."""

import dataclasses
from dataclasses import KW_ONLY, dataclass

import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from metaprior.baselines.map import MAPEstimator
from metaprior.estimators.base import as_numpy
from metaprior.estimators.checkpoints import Place
from metaprior.estimators.checks import expect
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.regressor import RegressorPart
from metaprior.inference import Fit
from metaprior.inference.curvature import dense_gauss_newton, kronecker_factors
from metaprior.likelihoods import Gaussian, Likelihood
from metaprior.model import Model
from metaprior.prediction import CHUNK_ROWS, as_float64, in_float64
from metaprior.weights import Laplace, Point
from metaprior.weights.laplace import Curvature, DenseCurvature, KroneckerCurvature
from metaprior.weights.point import product

#: Weights up to which "auto" takes the whole curvature.
FULL_WEIGHTS = 1500
STRUCTURES = ("auto", "full", "last_layer", "kronecker")


@dataclass(eq=False, repr=False)
class LaplaceEstimator(MAPEstimator):
    """The machinery of both estimators; see `LaplaceRegressor`."""

    _: KW_ONLY
    structure: str = "auto"
    num_predict_draws: int = 128

    @property
    def _is_one_run(self) -> bool:
        return False

    def _fit(
        self,
        x: np.ndarray,
        targets: np.ndarray,
        likelihood: Likelihood,
        num_functions: int,
        place: Place | None = None,
    ) -> None:
        """Train to the MAP weights, then measure the curvature there."""
        seed, problem = self._begun(x, targets, likelihood, num_functions)
        if self._going_on():
            point = Point(self.model_.weights.values, float(self.prior_scale))  # type: ignore[attr-defined]
            model = Model(point, self.model_.network, self.model_.likelihood)
        else:
            model = self._started(problem, seed)
        fit = self._trained(model, problem, seed, place)
        with in_float64():
            around = self._around(as_float64(fit.model), problem.x_unit, targets)
        self._keep(Fit(as_numpy(around), *fit[1:]), seed)
        self.prior_precision_ = float(np.exp(around.weights.log_precision))  # type: ignore[attr-defined]

    def _around(self, model: Model, x_unit: np.ndarray, targets: np.ndarray) -> Model:
        """Return the Laplace model around a trained one."""
        values = model.weights.values  # type: ignore[attr-defined]
        curvature, free = self._curvature(model, x_unit)
        start = 2 * np.log(1 / float(self.prior_scale))
        evidence = Evidence(model, x_unit, targets, np.asarray(curvature.eigenvalues()), values[free:])
        log_precision, log_factor, self.log_evidence_ = evidence.best(start)
        likelihood = model.likelihood
        if isinstance(likelihood, Gaussian):
            likelihood = dataclasses.replace(likelihood, log_noise=np.asarray(likelihood.log_noise) + log_factor)
        weights = Laplace(values, curvature, np.asarray(log_precision), np.asarray(log_factor))
        return Model(weights, model.network, likelihood)

    def _curvature(self, model: Model, x: np.ndarray) -> tuple[Curvature, int]:
        """Return H and the number of the first layer it is about."""
        values = model.weights.values  # type: ignore[attr-defined]
        shapes = [tuple(v.shape) for v in values]
        structure = self.structure
        if structure == "auto":
            structure = "full" if sum(int(np.prod(s)) for s in shapes) <= FULL_WEIGHTS else "kronecker"
        if structure == "kronecker":
            return _kronecker(model, x), 0
        free = len(values) - 1 if structure == "last_layer" else 0
        total = sum(
            np.asarray(dense_gauss_newton(model.network, model.likelihood, values, rows, free)) for rows in _chunks(x)
        )
        eigenvalues, vectors = np.linalg.eigh(total)
        return DenseCurvature(np.maximum(eigenvalues, 0), vectors, tuple(shapes[free:]), tuple(shapes[:free])), free

    def _num_predict_draws(self) -> int:
        return int(self.num_predict_draws)

    def _whole_numbers(self) -> list[tuple[str, int]]:
        return [*super()._whole_numbers(), ("num_predict_draws", 2)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        known = isinstance(self.structure, str) and self.structure in STRUCTURES
        expect("structure", self.structure, f"one of {STRUCTURES}", known)


def _chunks(x: np.ndarray) -> list[jnp.ndarray]:
    return [jnp.asarray(x[start : start + CHUNK_ROWS]) for start in range(0, len(x), CHUNK_ROWS)]


def _kronecker(model: Model, x: np.ndarray) -> KroneckerCurvature:
    values = model.weights.values  # type: ignore[attr-defined]
    parts = [kronecker_factors(model.network, model.likelihood, values, rows) for rows in _chunks(x)]
    inputs, outputs = ([sum(np.asarray(p[side][l]) for p in parts) for l in range(len(values))] for side in (0, 1))
    split_in = [np.linalg.eigh(a) for a in inputs]
    split_out = [np.linalg.eigh(g / len(x)) for g in outputs]
    return KroneckerCurvature(
        tuple(np.maximum(v, 0) for v, _ in split_in),
        tuple(u for _, u in split_in),
        tuple(np.maximum(v, 0) for v, _ in split_out),
        tuple(u for _, u in split_out),
    )


class Evidence:
    """The Laplace approximation of log p(y), as a function of the prior's precision and of the noise.

    log p(y | w*) - tau |w*|^2 / 2 + (W log tau - sum log(lambda / c^2 + tau)) / 2, c the factor of a learned Gaussian
    noise; w* is held. A point estimate leaves too little noise: the evidence knows how many weights it took.
    """

    def __init__(
        self, model: Model, x: np.ndarray, targets: np.ndarray, eigenvalues: np.ndarray, free: tuple[np.ndarray, ...]
    ) -> None:
        """Compute what does not depend on the two."""
        self.eigenvalues, self.size = eigenvalues, len(eigenvalues)
        self.squares = float(sum(np.sum(np.asarray(w) ** 2) for w in free))
        layers = [product(w) for w in model.weights.values]  # type: ignore[attr-defined]
        f = jnp.concatenate([model.network(layers, rows) for rows in _chunks(x)])
        self.log_prob = float(jnp.sum(model.likelihood.log_prob(f, jnp.asarray(targets))))
        gaussian = model.likelihood if isinstance(model.likelihood, Gaussian) and model.likelihood.learned else None
        self.learned = gaussian is not None
        self.num_targets = targets.size
        self.misfit = float(jnp.sum(((targets - f) / gaussian.noise) ** 2)) if gaussian is not None else 0.0

    def __call__(self, log_precision: float, log_factor: float) -> float:
        """Return the log evidence."""
        shrunk = np.exp(-2 * log_factor)
        fit = self.log_prob + 0.5 * self.misfit * (1 - shrunk) - self.num_targets * log_factor
        precision = np.exp(log_precision)
        volume = self.size * log_precision - np.sum(np.log(self.eigenvalues * shrunk + precision))
        return fit - 0.5 * precision * self.squares + 0.5 * volume

    def best(self, start: float) -> tuple[float, float, float]:
        """Return the log precision, the log noise factor and the evidence at the maximum."""

        def loss(at: np.ndarray) -> float:
            return -self(at[0], at[1] if self.learned else 0.0)

        bounds = [(np.log(1e-4), np.log(1e6))] + [(-3.0, 3.0)] * self.learned
        found = minimize(loss, [start] + [0.0] * self.learned, method="L-BFGS-B", bounds=bounds)
        return float(found.x[0]), float(found.x[1]) if self.learned else 0.0, -float(found.fun)


@dataclass(eq=False, repr=False)
class LaplaceRegressor(RegressorPart, LaplaceEstimator):
    """Regression by a network with a linearised Laplace posterior around its MAP weights.

    The precision of the prior and the noise are set by the evidence after training. Parameters that are not named
    here are those of `metaprior.MetaGPRegressor`.

    Parameters
    ----------
    structure : {"auto", "full", "last_layer", "kronecker"}, default="auto"
        The curvature of all weights together, of the last layer alone, or of a Kronecker product a layer; "auto" is
        "full" up to 1500 weights and "kronecker" beyond.
    prior_scale : float, default=1.0
        Standard deviation of the Gaussian prior in training.

    Attributes
    ----------
    prior_precision_ : float
        The prior's precision that the evidence chose.
    log_evidence_ : float
        The Laplace approximation of log p(y), targets standardised.
    """


@dataclass(eq=False, repr=False)
class LaplaceClassifier(ClassifierPart, LaplaceEstimator):
    """Classification by a network with a linearised Laplace posterior; see `LaplaceRegressor`."""
