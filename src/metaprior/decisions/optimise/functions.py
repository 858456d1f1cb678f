"""Functions drawn from a fitted surrogate, and their gradients.

A draw of a network is a function of x that the seed determines. It can be evaluated anywhere, any number of times, and
JAX gives its gradient. The draws of other models (exact GPs) are joint over the rows of one call only.
"""

import abc
from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.compilation import compiled, in_float64
from metaprior.estimators.differentiable import RowFunctions, is_smooth, row_functions
from metaprior.estimators.network_functions import is_network, network_draws, values_of
from metaprior.predictive.draws import NetworkDraws
from metaprior.predictive.integrated import CoherentDraws

#: What is minimised over x: a function from the draws' values [S, R] and lowest known values [S] to one number per row.
Criterion = Callable[[Any, Any], Any]


class DrawnFunctions(abc.ABC):
    """Functions drawn from the posterior of a fitted model, determined by the seed."""

    def __init__(self, model: Any, num_draws: int, seed: int) -> None:
        self.model, self.num_draws, self.seed = model, num_draws, seed

    @abc.abstractmethod
    def at(self, X: np.ndarray) -> np.ndarray:
        """Return the values of every draw at the rows, [S, N]."""

    @property
    @abc.abstractmethod
    def smooth(self) -> bool:
        """Whether `at` gives the same functions in every call, so that `slopes` can give their gradients."""

    @abc.abstractmethod
    def slopes(self, X: np.ndarray, criterion: Criterion, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a criterion [R] at every row and its gradient [R, D], in the units of the data."""


class JointFunctions(DrawnFunctions):
    """Functions drawn jointly over the rows of a call. Another call draws other functions."""

    smooth = False

    def at(self, X: np.ndarray) -> np.ndarray:
        """Return the values of every draw at the rows, [S, N]."""
        return np.asarray(self.model.sample_y(X, n_samples=self.num_draws, random_state=self.seed)).T

    def slopes(self, X: np.ndarray, criterion: Criterion, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Raise an error: draws that are valid for one call have no gradients."""
        raise TypeError(f"slopes: the draws of {type(self.model).__name__} hold for one call and have no gradients.")


class NetworkFunctions(DrawnFunctions):
    """Functions drawn from a network."""

    def _draws(self, X: np.ndarray) -> NetworkDraws | CoherentDraws:
        return network_draws(self.model, X, self.num_draws, np.array([self.seed, 2], np.uint32))

    def at(self, X: np.ndarray) -> np.ndarray:
        """Return the values of every draw at the rows, [S, N]."""
        return values_of(self.model, self._draws(X))

    @cached_property
    def smooth(self) -> bool:
        """Whether the values at a row depend only on that row, and continuously."""
        draws = self._draws(np.zeros((1, len(self.model.x_offset_))))
        return is_smooth(draws)

    def slopes(self, X: np.ndarray, criterion: Criterion, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a criterion [R] at every row and its gradient [R, D], in the units of the data."""
        draws, model = self._draws(X), self.model
        offset, scale = float(model.y_offset_[0]), float(model.y_scale_[0])
        with in_float64():
            parts = jnp.asarray(draws.x), jnp.asarray((known - offset) / scale)
            values, gradients = _slopes(row_functions(draws), *parts, criterion)
            return np.asarray(values), np.asarray(gradients) / model.x_scale_


@compiled
def _slopes(
    functions: RowFunctions, x: Float[Array, "R D"], known: Float[Array, " S"], criterion: Criterion
) -> tuple[Float[Array, " R"], Float[Array, "R D"]]:
    def total(x: Array) -> tuple[Array, Array]:
        values = criterion(functions(x)[..., 0], known)
        return jnp.sum(values), values  # rows are independent, so the gradient of the sum has the gradient of every row

    gradients, values = jax.grad(total, has_aux=True)(x)
    return values, gradients


def functions_of(model: Any, num_draws: int, seed: int) -> DrawnFunctions:
    """Return functions drawn from a fitted model, determined by the seed."""
    if is_network(model):
        return NetworkFunctions(model, num_draws, seed)
    if not hasattr(model, "sample_y"):
        raise TypeError(
            f"estimator: expected a model that can draw functions, with sample_y; {type(model).__name__} cannot: "
            "use acquisition='ei' and ask for one point at a time."
        )
    return JointFunctions(model, num_draws, seed)


def lowest(f: Any, known: Any) -> Any:
    """Return the mean of the draws' values, which for a single draw is its value."""
    return f.mean(axis=0)


def improvement(f: Any, known: Any) -> Any:
    """Return the negative expected improvement, -E max(known - f, 0), which is minimised."""
    return -(abs(known[:, None] - f) + known[:, None] - f).mean(axis=0) / 2
