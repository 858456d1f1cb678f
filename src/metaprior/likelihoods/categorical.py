"""The categorical likelihood: class probabilities are the softmax of one function per class."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods.base import Likelihood
from metaprior.types import Leaf


class Categorical(Likelihood):
    """P(y = c | f) = softmax(f)_c; y is the class number in one column."""

    def log_probabilities(self, f: Float[Array, "*b K"]) -> Float[Array, "*b C"]:
        """Return log P(y = c | f) for every class."""
        return jax.nn.log_softmax(f, axis=-1)

    def log_prob(self, f: Float[Array, "*b K"], y: Float[Array, "*c P"]) -> Float[Array, "*d"]:
        """Return the log probability of the class."""
        labels = jnp.broadcast_to(y.astype(jnp.int32), (*f.shape[:-1], 1))
        return jnp.take_along_axis(self.log_probabilities(f), labels, axis=-1)[..., 0]

    def mean(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return the class probabilities."""
        return jnp.exp(self.log_probabilities(f))

    def variance(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return p (1 - p) for each class."""
        p = self.mean(f)
        return p * (1 - p)

    @property
    def has_like_functions(self) -> bool:
        """True: there is one function for every class."""
        return True

    def functions_at(self, y: np.ndarray, num_functions: int) -> np.ndarray:
        """Return 3 for the observed class and 0 for the others, minus the mean over classes."""
        seen = np.eye(num_functions)[y[:, 0].astype(int)]
        return 3 * (seen - 1 / num_functions)

    def nodes(
        self, f: Float[Array, "*b K"], turn: Leaf | float = 0.0
    ) -> tuple[Float[Array, "R *b P"], Float[Array, "R *b"]]:
        """Return the classes and their probabilities."""
        p = jnp.moveaxis(self.mean(f), -1, 0)
        classes = jnp.arange(p.shape[0], dtype=f.dtype).reshape(-1, *[1] * f.ndim)
        return jnp.broadcast_to(classes, (*p.shape, 1)), p
