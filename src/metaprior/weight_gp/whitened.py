"""q(v): a Gaussian with a full covariance over whitened inducing values, whose prior is N(0, I)."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.types import Leaf

#: Standard deviation of q(v) at the start; the prior's is 1.
INITIAL_STD = 0.02


class Whitened(eqx.Module):
    """q(v) = N(m, T T')."""

    mean: Float[Leaf, " M"]
    log_diagonal: Float[Leaf, " M"]
    below_diagonal: Float[Leaf, "M M"]

    @staticmethod
    def start(mean: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the starting values of the fields: the given mean, with standard deviation `INITIAL_STD`."""
        return mean, np.full(mean.shape, np.log(INITIAL_STD)), np.zeros((len(mean), len(mean)))

    @property
    def n_inducing(self) -> int:
        """M."""
        return self.mean.shape[0]

    @property
    def factor(self) -> Float[Array, "M M"]:
        """T, lower triangular with a positive diagonal."""
        below = np.tril(np.ones(self.below_diagonal.shape, self.mean.dtype), -1)
        return jnp.diag(jnp.exp(self.log_diagonal)) + self.below_diagonal * below

    def draw(self, normals: Float[Array, " M"]) -> Float[Array, " M"]:
        """Return v = m + T normals."""
        return self.factor @ normals + self.mean

    def kl(self) -> Float[Array, ""]:
        """Return KL[N(m, T T') || N(0, I)] = (|T|^2 + |m|^2 - M) / 2 - log |T|."""
        squares = jnp.sum(self.factor**2) + jnp.sum(self.mean**2)
        return 0.5 * (squares - self.n_inducing) - jnp.sum(self.log_diagonal)
