"""Functions drawn from a fitted network as functions that JAX can differentiate, in standardised units.

A draw is fixed by its key: it is the same function in every call. Rows are independent given the draws.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metaprior.compilation import as_float64, compiled, in_float64
from metaprior.estimators.base import Regressor
from metaprior.estimators.checks import expect_whole
from metaprior.estimators.network_functions import is_network, network_draws
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.predictive.draws import NetworkDraws, joint_functions
from metaprior.predictive.integrated import CoherentDraws, coherent_functions, first_of
from metaprior.predictive.stacked import StackedPosteriors
from metaprior.types import Leaf

#: The fewest rows of a compiled program; others are the powers of two above.
FEWEST_ROWS = 8


class RowFunctions(eqx.Module):
    """Drawn functions: the mean of y under each of them."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "R D"]) -> Float[Array, "S R K"]:
        """Return the values at standardised rows."""


class IntegratedFunctions(RowFunctions):
    """Functions of a network with an integrated output layer."""

    posterior: StackedPosteriors
    key: Key[Array, ""]
    first: Leaf
    num_draws: int = eqx.field(static=True)

    def __call__(self, x: Float[Array, "R D"]) -> Float[Array, "S R K"]:
        """Return the values; the noise is Gaussian, and f is the mean."""
        return coherent_functions(self.posterior, self.key, x, self.num_draws, self.first)


class DrawnNetworks(RowFunctions):
    """Functions of networks whose weights are all drawn."""

    model: Model
    key: Key[Array, ""]
    num_draws: int = eqx.field(static=True)
    stacked: bool = eqx.field(static=True)

    def __call__(self, x: Float[Array, "R D"]) -> Float[Array, "S R K"]:
        """Return the mean of y under every draw."""
        return self.model.likelihood.mean(joint_functions(self.model, self.key, x, self.num_draws, False, self.stacked))


def row_functions(draws: NetworkDraws | CoherentDraws) -> RowFunctions:
    """Return drawn functions for JAX; only inside `in_float64`."""
    key = jax.random.wrap_key_data(jnp.asarray(draws.key), impl="threefry2x32")
    if isinstance(draws, CoherentDraws):
        return IntegratedFunctions(draws.posterior, key, first_of(draws.key), draws.num_draws)
    return DrawnNetworks(as_float64(draws.model), key, draws.num_draws, draws.stacked)


def is_smooth(draws: NetworkDraws | CoherentDraws) -> bool:
    """Return whether the values at a row depend only on that row, and continuously."""
    return not draws.whole and draws.model.weights.sizes().per_row == 0


class _Units(NamedTuple):
    """The units of the data."""

    x_offset: np.ndarray
    x_scale: np.ndarray
    y_offset: np.ndarray
    y_scale: np.ndarray


class FixedFunctions:
    """Functions drawn from a fitted regressor, in the units of the data, with their gradients.

    Parameters
    ----------
    estimator : regressor
        A fitted network of this library.
    num_draws : int
        How many functions are drawn.
    seed : int
        Decides which.
    """

    def __init__(self, estimator: Any, num_draws: int, seed: int) -> None:
        expect_whole("num_draws", num_draws, 1)
        if not (isinstance(estimator, Regressor) and is_network(estimator)):
            raise TypeError(
                f"estimator: expected a regressor of this library that is a network; got {type(estimator).__name__}."
            )
        self.num_draws = int(num_draws)
        self._units = _Units(estimator.x_offset_, estimator.x_scale_, estimator.y_offset_, estimator.y_scale_)
        draws = network_draws(estimator, self._units.x_offset[None], self.num_draws, np.array([seed, 2], np.uint32))
        if not is_smooth(draws):
            raise TypeError(
                "expected functions with gradients; the draws of this estimator hold for the rows of one call. Use an "
                "integrated output layer, or conditional='pathwise'."
            )
        if isinstance(draws, CoherentDraws) and not isinstance(draws.model.likelihood, Gaussian):
            raise TypeError(f"expected Gaussian noise; got {type(draws.model.likelihood).__name__}.")
        with in_float64():
            self._functions = row_functions(draws)

    @property
    def num_outputs(self) -> int:
        """The number of targets."""
        return len(self._units.y_scale)

    def values(self, X: np.ndarray) -> np.ndarray:
        """Return the values at rows [N, D]: [S, N, targets]."""
        rows = self._padded(X)
        with in_float64():
            found = np.asarray(_values(self._functions, jnp.asarray(rows)))[:, : len(X)]
        return self._units.y_offset + self._units.y_scale * found

    def pullback(self, X: np.ndarray, cotangents: np.ndarray) -> np.ndarray:
        """Return the gradient of sum(cotangents * values) with respect to the rows, [N, D]."""
        rows = self._padded(X)
        scaled = np.pad(cotangents * self._units.y_scale, ((0, 0), (0, len(rows) - len(X)), (0, 0)))
        with in_float64():
            found = np.asarray(_pullback(self._functions, jnp.asarray(rows), jnp.asarray(scaled)))[: len(X)]
        return found / self._units.x_scale

    def _padded(self, X: np.ndarray) -> np.ndarray:
        """Return the rows in standardised units, with zeros up to the next power of two."""
        rows = (np.asarray(X, np.float64) - self._units.x_offset) / self._units.x_scale
        size = max(FEWEST_ROWS, 1 << (len(rows) - 1).bit_length())
        return np.pad(rows, ((0, size - len(rows)), (0, 0)))


@compiled
def _values(functions: RowFunctions, x: Float[Array, "R D"]) -> Float[Array, "S R K"]:
    return functions(x)


@compiled
def _pullback(functions: RowFunctions, x: Float[Array, "R D"], cotangents: Float[Array, "S R K"]) -> Array:
    return jax.vjp(functions, x)[1](cotangents)[0]
