"""Linearised Laplace: train a plain network, then put a Gaussian around its weights, sized by the evidence."""

import dataclasses
from dataclasses import KW_ONLY, dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.optimize import minimize

from metaprior.baselines.map import MAPEstimator, PointRegressorPart
from metaprior.compilation import as_float64, in_float64
from metaprior.estimators.base import as_numpy
from metaprior.estimators.checks import expect
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.renamed import accepts_old_names
from metaprior.inference import Fit
from metaprior.inference.curvature import dense_gauss_newton, kronecker_factors
from metaprior.io.checkpoints import CheckpointConfig
from metaprior.likelihoods import Gaussian, Likelihood
from metaprior.model import Model
from metaprior.predictive.draws import CHUNK_ROWS
from metaprior.weights import Laplace, Point
from metaprior.weights.laplace import Curvature, DenseCurvature, KroneckerCurvature, Weights
from metaprior.weights.point import product

#: Weights up to which "auto" takes the whole curvature.
FULL_WEIGHTS = 1500
#: The logarithm of the largest factor between the noise of training and that of the evidence.
WIDEST_FACTOR = 3.0
STRUCTURES = ("auto", "full", "last_layer", "kronecker")


@dataclass(eq=False, repr=False)
class LaplaceEstimator(MAPEstimator):
    """The machinery of both estimators; see `LaplaceRegressor`."""

    _: KW_ONLY
    structure: str = "auto"
    n_predict_draws: int = 128

    @property
    def _is_one_run(self) -> bool:
        return False

    def _fit(
        self,
        x: np.ndarray,
        targets: np.ndarray,
        likelihood: Likelihood,
        num_functions: int,
        place: CheckpointConfig | None = None,
    ) -> None:
        """Train to the MAP weights, then measure the curvature there."""
        seed, problem = self._begun(x, targets, likelihood, num_functions)
        if self._going_on():
            scale = self._scale_of_prior(x.shape[1])
            point = Point(self.model_.weights.values, scale)  # type: ignore[attr-defined]
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
        curvature = self._curvature(model, x_unit)
        start = -2 * np.log(self._scale_of_prior(x_unit.shape[1]))
        log_precision, log_factor, self.log_evidence_ = Evidence(model, x_unit, targets, curvature).best(start)
        likelihood = model.likelihood
        if isinstance(likelihood, Gaussian):
            likelihood = dataclasses.replace(likelihood, log_noise=np.asarray(likelihood.log_noise) + log_factor)
        weights = Laplace(values, curvature, np.asarray(log_precision), np.asarray(log_factor))
        return Model(weights, model.network, likelihood)

    def _curvature(self, model: Model, x: np.ndarray) -> Curvature:
        """Return H, of all layers or of the last."""
        values = model.weights.values  # type: ignore[attr-defined]
        shapes = [tuple(v.shape) for v in values]
        structure = self.structure
        if structure == "auto":
            structure = "full" if sum(int(np.prod(s)) for s in shapes) <= FULL_WEIGHTS else "kronecker"
        if structure == "kronecker":
            return _kronecker(model, x)
        free = len(values) - 1 if structure == "last_layer" else 0
        total = sum(
            np.asarray(dense_gauss_newton(model.network, model.likelihood, values, rows, free)) for rows in _chunks(x)
        )
        eigenvalues, vectors = np.linalg.eigh(total)
        return DenseCurvature(np.maximum(eigenvalues, 0), vectors, tuple(shapes[free:]), tuple(shapes[:free]))

    def _n_predict_draws(self) -> int:
        return int(self.n_predict_draws)

    def _whole_numbers(self) -> list[tuple[str, int]]:
        return [*super()._whole_numbers(), ("n_predict_draws", 2)]

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
    """The evidence of the network linearised at w*, as a function of the prior's precision and of the noise.

    log p(y | w*) - tau |w*|^2 / 2 + sum (b - tau w*)^2 / (lambda + tau) / 2 + (W log tau - sum log(lambda + tau)) / 2

    with b the gradient of log p(y | w) at w* and lambda the curvature, in the eigenbasis. Where w* is the maximum under
    tau, b = tau w*; under another tau, or where training ended before the maximum, that of the linear model lies
    elsewhere, and the third term goes there. A learned Gaussian noise gets a factor c: lambda / c^2 and b / c^2. A
    point estimate leaves too little noise: the evidence knows how many weights it took.
    """

    def __init__(self, model: Model, x: np.ndarray, targets: np.ndarray, curvature: Curvature) -> None:
        """Compute what does not depend on the two."""
        values = tuple(map(jnp.asarray, model.weights.values))  # type: ignore[attr-defined]
        parts = [_fit_and_slopes(model, values, *rows) for rows in zip(_chunks(x), _chunks(targets), strict=True)]
        self.log_prob, self.misfit = sum(float(p) for p, _, _ in parts), sum(float(m) for _, m, _ in parts)
        self.eigenvalues, self.point = np.asarray(curvature.eigenvalues()), _coefficients(curvature, values)
        self.slope = sum(_coefficients(curvature, slopes) for *_, slopes in parts)
        self.learned = isinstance(model.likelihood, Gaussian) and model.likelihood.learned
        self.num_targets = targets.size

    def __call__(self, log_precision: float, log_factor: float) -> float:
        """Return the log evidence."""
        shrunk, precision = np.exp(-2 * log_factor), np.exp(log_precision)
        fit = self.log_prob + 0.5 * self.misfit * (1 - shrunk) - self.num_targets * log_factor
        curvature = self.eigenvalues * shrunk + precision
        gained = np.sum((self.slope * shrunk - precision * self.point) ** 2 / curvature)
        volume = len(curvature) * log_precision - np.sum(np.log(curvature))
        return fit + 0.5 * (gained - precision * np.sum(self.point**2) + volume)

    def best(self, start: float) -> tuple[float, float, float]:
        """Return the log precision, the log noise factor and the evidence at the maximum.

        Predictions have the network's own mean, not the linear model's: what that leaves unexplained of the data is
        the least that the noise can be.
        """

        def loss(at: np.ndarray) -> float:
            return -self(at[0], at[1] if self.learned else 0.0)

        left = 0.5 * np.log(max(self.misfit / self.num_targets, 1e-300))
        least = max(left, -WIDEST_FACTOR)
        bounds = [(np.log(1e-4), np.log(1e6))] + [(least, max(least, 0.0) + WIDEST_FACTOR)] * self.learned
        found = minimize(loss, [start] + [max(least, 0.0)] * self.learned, method="L-BFGS-B", bounds=bounds)
        return float(found.x[0]), float(found.x[1]) if self.learned else 0.0, -float(found.fun)


def _fit_and_slopes(model: Model, values: Weights, x: Array, y: Array) -> tuple[Array, Array, Weights]:
    """Return log p(y | w) at some rows, sum ((y - f) / noise)^2 for a Gaussian, and the gradient over w."""
    f, back = jax.vjp(lambda weights: model.network([product(w) for w in weights], x), values)
    log_prob, slope = jax.value_and_grad(lambda f: jnp.sum(model.likelihood.log_prob(f, y)))(f)
    noise = model.likelihood.noise if isinstance(model.likelihood, Gaussian) else np.inf
    return log_prob, jnp.sum(((y - f) / noise) ** 2), back(slope)[0]


def _coefficients(curvature: Curvature, layers: Weights) -> np.ndarray:
    """Return weights in the eigenbasis: the way back from it is orthogonal, so its transpose undoes it."""
    _, transpose = jax.vjp(curvature.weights, jnp.zeros_like(curvature.eigenvalues()))
    return np.asarray(transpose(list(layers))[0])


@accepts_old_names
@dataclass(eq=False, repr=False)
class LaplaceRegressor(PointRegressorPart, LaplaceEstimator):
    """Regression by a network with a linearised Laplace posterior around its MAP weights.

    After training, in which some rows may be held out, the curvature is taken on all rows, and the precision of the
    prior and the noise are set by the evidence of the linearised network. Parameters that are not named here are those
    of `MAPRegressor` and `metaprior.MetaGPRegressor`.

    Parameters
    ----------
    structure : {"auto", "full", "last_layer", "kronecker"}, default="auto"
        The curvature of all weights together, of the last layer alone, or of a Kronecker product a layer; "auto" is
        "full" up to 1500 weights and "kronecker" beyond.
    prior_scale : float or "auto", default="auto"
        Standard deviation of the Gaussian prior in training; see `MAPRegressor`.

    Attributes
    ----------
    prior_precision_ : float
        The prior's precision that the evidence chose.
    log_evidence_ : float
        The Laplace approximation of log p(y), targets standardised.
    """


@accepts_old_names
@dataclass(eq=False, repr=False)
class LaplaceClassifier(ClassifierPart, LaplaceEstimator):
    """Classification by a network with a linearised Laplace posterior; see `LaplaceRegressor`."""
