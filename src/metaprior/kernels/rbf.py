"""The exponentiated quadratic kernel, exp(-r^2 / 2), for smooth functions. Over weight codes it is the paper's k_w."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.kernels.stationary import Stationary


class RBF(Stationary):
    """exp(-r^2 / 2), where r is the distance in lengthscales."""

    def of_squared_distance(self, r2: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """Return exp(-r^2 / 2)."""
        return jnp.exp(-0.5 * r2)
