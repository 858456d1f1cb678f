"""sigma_w: the noise between the GP and a weight, w = f(code) + sigma_w(code) n with n ~ N(0, 1).

It is one value, or a function of the code (the heteroscedastic form of the paper's footnote). Then log sigma_w^2 is
linear in the code, so sigma_w is a product over the two units and no computation needs the weights one by one.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.types import Leaf

INITIAL_STD = 0.01


class WeightNoise(eqx.Module):
    """sigma_w(code)^2 = std^2 exp(slope_in . z_in) exp(slope_out . z_out), relative to the layer's scale."""

    log_std: Float[Leaf, ""]
    slope_in: Float[Leaf, " Dz"] | None
    slope_out: Float[Leaf, " Dz"] | None

    @classmethod
    def initial(cls, latent_dim: int, *, heteroscedastic: bool = False, std: float = INITIAL_STD) -> "WeightNoise":
        """Start with the same value for all codes."""
        slope = np.zeros(latent_dim) if heteroscedastic else None
        return cls(np.asarray(np.log(std)), slope, None if slope is None else slope.copy())

    def std_in(self, z: Float[Array, "H Dz"]) -> Float[Array, " H"]:
        """Return the factor of sigma_w that belongs to the input units; it includes the overall level."""
        slope = jnp.zeros(z.shape[0], z.dtype) if self.slope_in is None else z @ self.slope_in
        return jnp.exp(self.log_std + 0.5 * slope)

    def std_out(self, z: Float[Array, "H Dz"]) -> Float[Array, " H"]:
        """Return the factor of sigma_w that belongs to the output units."""
        return jnp.ones(z.shape[0], z.dtype) if self.slope_out is None else jnp.exp(0.5 * z @ self.slope_out)
