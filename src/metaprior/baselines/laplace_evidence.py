"""The evidence of a network that is linearised at its weights. It chooses the precision of the prior and the noise."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.optimize import minimize

from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.predictive.draws import CHUNK_ROWS
from metaprior.weights.laplace import Curvature, Weights
from metaprior.weights.point import product

#: The logarithm of the largest factor between the noise of training and the noise that the evidence chooses.
WIDEST_FACTOR = 3.0


def chunks(x: np.ndarray) -> list[Array]:
    """Return the rows in parts that fit into memory."""
    return [jnp.asarray(x[start : start + CHUNK_ROWS]) for start in range(0, len(x), CHUNK_ROWS)]


class Evidence:
    """The evidence of the network linearised at w*, as a function of the prior's precision and of the noise.

    log p(y | w*) - tau |w*|^2 / 2 + sum (b - tau w*)^2 / (lambda + tau) / 2 + (W log tau - sum log(lambda + tau)) / 2

    with b the gradient of log p(y | w) at w* and lambda the curvature, in the eigenbasis. If w* is the maximum under
    tau, b = tau w*. Under another tau, or if training ended before the maximum, the maximum of the linear model is
    elsewhere, and the third term accounts for that. A learned Gaussian noise gets a factor c, which gives lambda / c^2
    and b / c^2. A point estimate makes the noise too small; the evidence corrects it for the weights that were fitted.
    """

    def __init__(
        self,
        model: Model,
        point: Weights,
        x: np.ndarray,
        targets: np.ndarray,
        curvature: Curvature,
        weight: np.ndarray | None = None,
    ) -> None:
        """Compute what depends on neither the precision nor the noise. `point` is w*; a row counts `weight` times."""
        values, weight = tuple(map(jnp.asarray, point)), np.ones(len(x)) if weight is None else weight
        rows = zip(chunks(x), chunks(targets), chunks(weight), strict=True)
        parts = [_fit_and_slopes(model, values, *part) for part in rows]
        self.log_prob, self.misfit = sum(float(p) for p, _, _ in parts), sum(float(m) for _, m, _ in parts)
        self.eigenvalues, self.point = np.asarray(curvature.eigenvalues()), _coefficients(curvature, values)
        self.slope = sum(_coefficients(curvature, slopes) for *_, slopes in parts)
        self.learned = isinstance(model.likelihood, Gaussian) and model.likelihood.learned
        self.num_targets = targets.shape[1] * float(np.sum(weight))

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

        Predictions use the mean of the network, not that of the linear model. So the noise is bounded below by what the
        network leaves unexplained of the data.
        """

        def loss(at: np.ndarray) -> float:
            return -self(at[0], at[1] if self.learned else 0.0)

        left = 0.5 * np.log(max(self.misfit / self.num_targets, 1e-300))
        least = max(left, -WIDEST_FACTOR)
        bounds = [(np.log(1e-4), np.log(1e6))] + [(least, max(least, 0.0) + WIDEST_FACTOR)] * self.learned
        found = minimize(loss, [start] + [max(least, 0.0)] * self.learned, method="L-BFGS-B", bounds=bounds)
        return float(found.x[0]), float(found.x[1]) if self.learned else 0.0, -float(found.fun)


def _fit_and_slopes(model: Model, values: Weights, x: Array, y: Array, weight: Array) -> tuple[Array, Array, Weights]:
    """Return log p(y | w) at some rows, sum ((y - f) / noise)^2 for a Gaussian (else 0), and the gradient by w."""
    f, back = jax.vjp(lambda weights: model.network([product(w) for w in weights], x), values)
    log_prob, slope = jax.value_and_grad(lambda f: jnp.sum(weight * model.likelihood.log_prob(f, y)))(f)
    noise = model.likelihood.noise if isinstance(model.likelihood, Gaussian) else np.inf
    return log_prob, jnp.sum(weight[:, None] * ((y - f) / noise) ** 2), back(slope)[0]


def _coefficients(curvature: Curvature, layers: Weights) -> np.ndarray:
    """Return weights in the eigenbasis. The map from it is orthogonal, so its transpose is its inverse."""
    _, transpose = jax.vjp(curvature.weights, jnp.zeros_like(curvature.eigenvalues()))
    return np.asarray(transpose(list(layers))[0])
