"""The Poisson likelihood: counts with rate exp(f)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.likelihoods.base import OutputLikelihood
from metaprior.likelihoods.invert import invert


class Poisson(OutputLikelihood):
    """P(y | f) = exp(f y - exp(f)) / y!."""

    def log_prob(self, f: Float[Array, "*b K"], y: Float[Array, "*c P"]) -> Float[Array, "*d"]:
        """Return y f - exp(f) - log y!, summed."""
        return jnp.sum(y * f - jnp.exp(f) - jax.lax.lgamma(y + 1), axis=-1)

    def mean(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return the rate."""
        return jnp.exp(f)

    def variance(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return the rate."""
        return jnp.exp(f)

    def cdf(self, f: Float[Array, "*b K"], y: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return P(Y <= y) = Q(floor(y) + 1, rate)."""
        f, y = jnp.broadcast_arrays(f, y)
        whole = jnp.floor(y)
        return jnp.where(whole < 0, 0, jax.scipy.special.gammaincc(jnp.maximum(whole, 0) + 1, jnp.exp(f)))

    def from_uniform(self, f: Float[Array, "*b K"], u: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return the smallest count whose distribution function reaches u."""
        f, u = jnp.broadcast_arrays(f, u)
        rate = jnp.exp(f)
        high = rate + 12 * jnp.sqrt(rate) + 30
        return self.attained(invert(lambda y: self.cdf(f, y), u, jnp.full_like(rate, -0.5), high))

    def attained(self, y: Float[Array, "*b K"]) -> Float[Array, "*b K"]:
        """Return the whole number at the jump that bisection came near."""
        return jnp.ceil(y - 1e-6)
