"""The rational quadratic kernel: a mixture of RBFs with different lengthscales.

(1 + r^2 / 2 alpha)^-alpha = E[exp(-tau r^2 / 2)], tau ~ Gamma(alpha, rate alpha). A feature draws tau from the
proposal of Marsaglia and Tsang, tau = d (1 + n / sqrt(9 d))^3 U^(1/alpha) / alpha with d = alpha + 2/3. Instead of
rejecting draws it is weighted by the density ratio, so it is unbiased and differentiable in alpha.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.hyper import Hyper, hyper
from metaprior.kernels.stationary import Stationary
from metaprior.numerics import uniform_from_normal
from metaprior.types import Leaf


class RationalQuadratic(Stationary):
    """(1 + r^2 / (2 alpha))^-alpha, where r is the distance in lengthscales."""

    alpha: Hyper = hyper(1.0, doc="The shape of the mixture: with large values the kernel is close to the RBF.")

    def of_squared_distance(self, r2: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """Return (1 + r^2 / (2 alpha))^-alpha."""
        return jnp.exp(-self.alpha * jnp.log1p(r2 / (2 * self.alpha)))

    def num_mixture_normals(self) -> int:
        """Return 2: one normal for the cube and one for the power of a uniform."""
        return 2

    def spectral_scale(self, normals: Float[Leaf, "R F"]) -> tuple[Float[Array, " F"], Float[Array, " F"]]:
        """Return sqrt(tau) and the density ratio of tau."""
        shape = self.alpha + 1  # Gamma(alpha) = Gamma(alpha + 1) * U^(1/alpha)
        d = shape - 1.0 / 3
        root = 1 + normals[0] / jnp.sqrt(9 * d)
        inside = root > 1e-3
        v = jnp.where(inside, root, 1) ** 3
        # log of Gamma(shape).pdf(d v) * |d(d v)/dn| / normal.pdf(n)
        log_ratio = (
            (shape - 1) * jnp.log(d * v)
            - d * v
            - jax.lax.lgamma(shape)
            + jnp.log(jnp.sqrt(d) * jnp.where(inside, root, 1) ** 2)
            + 0.5 * normals[0] ** 2
            + 0.5 * np.log(2 * np.pi)
        )
        weight = jnp.where(inside, jnp.exp(log_ratio), 1e-30)  # not 0, because its sqrt is differentiated
        log_uniform = jnp.log(jnp.maximum(uniform_from_normal(normals[1]), 1e-20))
        # sqrt(tau) is computed by factors, because in float32 tau may be 0, where the derivative of sqrt is infinite.
        return jnp.sqrt(d * v / self.alpha) * jnp.exp(0.5 * log_uniform / self.alpha), weight
