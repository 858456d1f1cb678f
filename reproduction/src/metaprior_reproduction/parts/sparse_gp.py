"""A sparse Gaussian process: inducing points under the collapsed bound of Titsias (2009), as a baseline for many rows.

With Q = K_nm K_mm^-1 K_mn the bound is log N(y; 0, Q + noise^2 I) - tr(K - Q) / (2 noise^2). It is maximised by L-BFGS
over the lengthscales, the variance, the noise and the inducing points together. Time grows as N M^2. With an inducing
point at every row the bound is the evidence of the exact GP, and the predictions are its predictions.
"""

from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import MiniBatchKMeans

from metaprior.compilation import in_float64
from metaprior.predictive.gaussian import GaussianFunctions, GaussianPredictive
from metaprior.types import Leaf

#: What is added to the diagonal of K_mm, as a fraction of the variance.
JITTER = 1e-6
#: The noise where the search starts, in standard deviations of the targets.
START_NOISE = 0.3


class Parameters(NamedTuple):
    """What the bound is maximised over, in standardised units."""

    log_lengthscale: Float[Leaf, " D"]
    log_variance: Float[Leaf, ""]
    log_noise: Float[Leaf, ""]
    points: Float[Leaf, "M D"]


def covariance(own: Parameters, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
    """Return the RBF kernel with one lengthscale per column."""
    scale = jnp.exp(own.log_lengthscale)
    a, b = a / scale, b / scale
    squared = jnp.sum(a**2, 1)[:, None] + jnp.sum(b**2, 1) - 2 * a @ b.T
    return jnp.exp(own.log_variance - 0.5 * jnp.maximum(squared, 0))


class Factors(NamedTuple):
    """With A = L^-1 K_mn / noise and L L' = K_mm: the factors L and L_B of B = I + A A', and c = L_B^-1 A y / noise."""

    root: Float[Leaf, "M M"]
    small_root: Float[Leaf, "M M"]
    weights: Float[Leaf, " M"]
    explained: Float[Leaf, ""]


def factors(own: Parameters, x: Float[Array, "N D"], y: Float[Array, " N"]) -> Factors:
    """Return the factors of the bound; `explained` is tr(A A')."""
    noise, count = jnp.exp(own.log_noise), len(own.points)
    gram = covariance(own, own.points, own.points)
    root = jnp.linalg.cholesky(gram + JITTER * jnp.exp(own.log_variance) * jnp.eye(count))
    scaled = jax.scipy.linalg.solve_triangular(root, covariance(own, own.points, x), lower=True) / noise
    product = scaled @ scaled.T
    small_root = jnp.linalg.cholesky(jnp.eye(count) + product)
    weights = jax.scipy.linalg.solve_triangular(small_root, scaled @ y / noise, lower=True)
    return Factors(root, small_root, weights, jnp.trace(product))


def bound(own: Parameters, x: Float[Array, "N D"], y: Float[Array, " N"]) -> Float[Array, ""]:
    """Return the collapsed bound."""
    found, noise = factors(own, x, y), jnp.exp(own.log_noise)
    fit = jnp.sum(y**2) / noise**2 - jnp.sum(found.weights**2)
    missed = len(y) * jnp.exp(own.log_variance) / noise**2 - found.explained
    constant = len(y) * (0.5 * np.log(2 * np.pi) + own.log_noise) + jnp.sum(jnp.log(jnp.diagonal(found.small_root)))
    return -constant - 0.5 * (fit + missed)


class SparseFunctions(GaussianFunctions):
    """The posterior functions of a fitted sparse GP at given standardised rows."""

    def __init__(self, own: Parameters, found: Factors, x: np.ndarray) -> None:
        """Keep the parameters, the factors and the rows."""
        self.own, self.found, self.x, self.num_rows = own, found, x, len(x)

    def _halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Return L^-1 K_mx and L_B^-1 L^-1 K_mx."""
        with in_float64():
            cross = np.asarray(covariance(self.own, self.own.points, jnp.asarray(self.x)))
        first = solve_triangular(self.found.root, cross, lower=True)
        return first, solve_triangular(self.found.small_root, first, lower=True)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance of every value, [N, 1] each."""
        first, second = self._halves()
        variance = np.exp(self.own.log_variance) - np.sum(first**2, axis=0) + np.sum(second**2, axis=0)
        return (second.T @ self.found.weights)[:, None], np.maximum(variance, 0.0)[:, None]

    def covariance(self) -> np.ndarray:
        """Return the covariance of the values over the rows, [1, N, N]."""
        first, second = self._halves()
        with in_float64():
            prior = np.asarray(covariance(self.own, jnp.asarray(self.x), jnp.asarray(self.x)))
        return (prior - first.T @ first + second.T @ second)[None]

    def at_rows(self, rows: np.ndarray) -> Self:
        """Return the same functions at some of the rows."""
        return type(self)(self.own, self.found, self.x[rows])

    def draws(self, num_draws: int, seed: int) -> np.ndarray:
        """Return functions drawn jointly over the rows, [num_draws, N, 1]."""
        values, vectors = np.linalg.eigh(self.covariance()[0])
        root = vectors * np.sqrt(np.maximum(values, 0))
        normals = np.random.default_rng(seed).standard_normal((num_draws, self.num_rows))
        return (self.moments()[0].T + normals @ root.T)[..., None]


class SparseGPRegressor(RegressorMixin, BaseEstimator):
    """Regression by a sparse GP with an RBF kernel, one lengthscale per column.

    Parameters
    ----------
    n_inducing : int, default=500
        The number of inducing points, which start at the centres of clusters of the rows; all rows, if there are fewer.
    max_iter : int, default=100
        The largest number of steps of L-BFGS.
    most_rows : int, default=10000
        The bound is maximised over so many random rows; the posterior is then that of all rows.
    random_state : int, default=0
        The seed of the clusters and of these rows.

    Attributes
    ----------
    bound_ : float
        The bound at its maximum, of the rows that it is maximised over, in nats, for standardised targets.
    noise_ : float
        The standard deviation of the noise, in units of the target.
    """

    def __init__(
        self, n_inducing: int = 500, max_iter: int = 100, most_rows: int = 10_000, random_state: int = 0
    ) -> None:
        self.n_inducing = n_inducing
        self.max_iter = max_iter
        self.most_rows = most_rows
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Maximise the bound, and condition on all rows."""
        X, y = np.asarray(X, np.float64), np.asarray(y, np.float64)
        self.center_, spread = X.mean(0), X.std(0)
        self.spread_ = np.where(spread > 0, spread, 1.0)
        self.offset_, self.scale_ = float(y.mean()), float(y.std()) or 1.0
        x, targets = (X - self.center_) / self.spread_, (y - self.offset_) / self.scale_
        chosen = np.random.default_rng(self.random_state).permutation(len(y))[: self.most_rows]
        with in_float64():
            self._maximise(self._start(x[chosen]), jnp.asarray(x[chosen]), jnp.asarray(targets[chosen]))
            found = jax.jit(factors)(self.parameters_, jnp.asarray(x), jnp.asarray(targets))
        self.factors_ = Factors(*map(np.asarray, found))
        self.noise_ = float(np.exp(self.parameters_.log_noise)) * self.scale_
        return self

    def _start(self, x: np.ndarray) -> Parameters:
        points = x
        if len(x) > self.n_inducing:
            clusters = MiniBatchKMeans(self.n_inducing, n_init=1, random_state=self.random_state, batch_size=4096)
            points = clusters.fit(x).cluster_centers_
        lengthscale = np.full(x.shape[1], 0.5 * np.log(x.shape[1]))
        return Parameters(lengthscale, np.zeros(()), np.asarray(np.log(START_NOISE)), points.astype(np.float64))

    def _maximise(self, start: Parameters, x: Float[Array, "N D"], y: Float[Array, " N"]) -> None:
        flat, whole = ravel_pytree(start)
        loss = jax.jit(jax.value_and_grad(lambda values, x, y: -bound(whole(values), x, y) / len(y)))

        def of(values: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = loss(jnp.asarray(values), x, y)
            return (float(value), np.asarray(gradient)) if np.isfinite(value) else (1e10, np.zeros_like(values))

        found = minimize(of, np.asarray(flat), jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter})
        self.parameters_ = Parameters(*map(np.asarray, whole(jnp.asarray(found.x))))
        self.bound_ = -float(found.fun) * len(y)

    def predict_distribution(self, X: Any) -> GaussianPredictive:
        """Return the predictive distribution at the rows of X."""
        x = (np.asarray(X, np.float64) - self.center_) / self.spread_
        functions = SparseFunctions(self.parameters_, self.factors_, x)
        noise, offset, scale = ([value] for value in (self.noise_ / self.scale_, self.offset_, self.scale_))
        return GaussianPredictive(
            functions, np.array(noise), np.array(offset), np.array(scale), flat=True, seed=self.random_state
        )

    def predict(self, X: Any) -> np.ndarray:
        """Return the mean."""
        mean: np.ndarray = self.predict_distribution(X).mean
        return mean
