"""Unit latents: every unit of the network, including one bias unit per layer, has a small vector z with prior N(0, I).

The posterior q(z) is a diagonal Gaussian (the paper's equation for q(w, z, f)). The units of all layers are in one
array, in the order of the layers, so that a draw is one operation and so is its KL.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.types import Leaf

#: Standard deviation of q(z) at the start.
INITIAL_STD = 0.1


class UnitLatents(eqx.Module):
    """q(z) = N(mean, std^2) for every unit."""

    mean: Float[Leaf, "U Dz"]
    log_std: Float[Leaf, "U Dz"]

    @classmethod
    def initial(cls, num_units: int, latent_dim: int, rng: np.random.Generator) -> "UnitLatents":
        """Start from a draw of the prior as the mean, with standard deviation `INITIAL_STD`."""
        mean = rng.standard_normal((num_units, latent_dim))
        return cls(mean, np.full_like(mean, np.log(INITIAL_STD)))

    @property
    def num_normals(self) -> int:
        """The number of normals that a draw needs."""
        return int(np.prod(self.mean.shape))

    def draw(self, normals: Float[Array, " n"]) -> Float[Array, "U Dz"]:
        """Return z = mean + std * normals."""
        return jnp.exp(self.log_std) * normals.reshape(self.mean.shape) + self.mean

    def kl(self) -> Float[Array, ""]:
        """Return KL[q(z) || N(0, I)]."""
        return gaussian_kl(self.mean, self.log_std)


def gaussian_kl(mean: Float[Leaf, "*s"], log_std: Float[Leaf, "*s"]) -> Float[Array, ""]:
    """Return KL[N(mean, std^2) || N(0, 1)], summed: (std^2 + mean^2 - 1) / 2 - log std."""
    return jnp.sum(0.5 * (jnp.exp(2 * log_std) + mean**2 - 1) - log_std)
