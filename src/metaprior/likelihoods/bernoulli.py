"""The Bernoulli likelihood: P(y = 1 | f) = sigmoid(f), with one function for two classes."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods.categorical import Categorical


class Bernoulli(Categorical):
    """Two classes with one function: the probabilities are the softmax of (0, f)."""

    def log_probabilities(self, f: Float[Array, "*b K"]) -> Float[Array, "*b C"]:
        """Return log(1 - p) and log p."""
        return jnp.concatenate([jax.nn.log_sigmoid(-f), jax.nn.log_sigmoid(f)], axis=-1)

    def functions_at(self, y: np.ndarray, num_functions: int) -> np.ndarray:
        """Return 2 for the second class, -2 for the first."""
        return 4 * y - 2
