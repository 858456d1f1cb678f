"""The Student-t likelihood: y = f + heavy-tailed noise, so that outliers have less influence."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods.base import OutputLikelihood
from metaprior.likelihoods.gaussian import NOISE_HOLD, half_normal_log_density
from metaprior.likelihoods.invert import invert
from metaprior.types import Leaf


class StudentT(OutputLikelihood):
    """A scaled and shifted t distribution with 2 + excess degrees of freedom, so that the variance exists."""

    log_scale: Float[Leaf, "*s K"]
    log_excess: Float[Leaf, "*e"]
    learned: bool = eqx.field(static=True, default=True)
    hold: float = eqx.field(static=True, default=NOISE_HOLD)

    @property
    def scale(self) -> Float[Array, "*s K"]:
        """The scale of the noise of every output."""
        return jnp.exp(self.log_scale)

    @property
    def degrees(self) -> Float[Array, "*e"]:
        """The degrees of freedom, above 2."""
        return 2 + jnp.exp(self.log_excess)

    def log_prob(self, f: Float[Array, "*b K"], y: Float[Array, "*c P"]) -> Float[Array, "*d"]:
        """Return the log density, summed."""
        return jnp.sum(jax.scipy.stats.t.logpdf(y, self.degrees, f, self.scale), axis=-1)

    def functions_at(self, y: np.ndarray, num_functions: int) -> np.ndarray:
        """Return y."""
        return y

    def mean(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return f."""
        return f

    def variance(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return scale^2 nu / (nu - 2)."""
        return jnp.broadcast_to(self.scale**2 * self.degrees / (self.degrees - 2), f.shape)

    def cdf(self, f: Float[Array, "*b K"], y: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return the distribution function by the incomplete beta function, from the middle or from the tail."""
        t, half = (y - f) / self.scale, self.degrees / 2
        t2 = t * t
        middle = 0.5 + 0.5 * jnp.sign(t) * jax.scipy.special.betainc(0.5, half, t2 / (self.degrees + t2))
        tail = 0.5 * jax.scipy.special.betainc(half, 0.5, self.degrees / (self.degrees + t2))
        return jnp.where(t2 < 1, middle, jnp.where(t > 0, 1 - tail, tail))

    def from_uniform(self, f: Float[Array, "*b K"], u: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return f + scale t^-1(u), by bisection on the standard t."""
        unit = StudentT(jnp.zeros_like(self.log_scale), self.log_excess)
        u = jnp.broadcast_to(u, jnp.broadcast_shapes(u.shape, self.scale.shape, self.degrees.shape))
        wide = jnp.full(u.shape, 1e4, u.dtype)
        return f + self.scale * invert(lambda t: unit.cdf(jnp.zeros_like(t), t), u, -wide, wide)

    def log_prior(self) -> Float[Array, ""]:
        """Return the log density of log scale, for a half-normal scale, and of log excess ~ N(log 3, 1)."""
        if not self.learned:
            return jnp.zeros(())
        tail = jnp.sum(-0.5 * (self.log_excess - np.log(3.0)) ** 2 - 0.5 * np.log(2 * np.pi))
        return half_normal_log_density(self.log_scale) + tail

    def release_times(self) -> "StudentT":
        """Return the time for which the scale and the degrees of freedom are held."""
        hold = np.float32(self.hold if self.learned else np.inf)
        return eqx.tree_at(lambda g: (g.log_scale, g.log_excess), self, (hold, hold))
