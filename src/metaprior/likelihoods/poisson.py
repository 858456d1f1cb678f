"""The Poisson likelihood: counts with rate exp(f)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods.base import OutputLikelihood
from metaprior.likelihoods.invert import invert

#: Up to this rate `quick_quantile` sums probabilities, and then a quantile is at most this count.
SMALL_RATE, LARGEST_COUNT = 10.0, 48


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

    def quick_quantile(self, f: Float[Array, "*b K"], u: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return the quantile; for rates above 10 by a Cornish-Fisher expansion, which is at most a few counts off."""
        f, u = jnp.broadcast_arrays(f, u)
        rate, z = jnp.exp(f), jax.scipy.stats.norm.ppf(u)
        expanded = jnp.maximum(jnp.ceil(rate + jnp.sqrt(rate) * z + (z * z - 1) / 6 - 0.5), 0)
        return jnp.where(rate > SMALL_RATE, expanded, _summed_quantile(jnp.minimum(rate, SMALL_RATE), u))

    def functions_at(self, y: np.ndarray, num_functions: int) -> np.ndarray:
        """Return log(y + 1/2)."""
        return np.log(y + 0.5)

    def attained(self, y: Float[Array, "*b K"]) -> Float[Array, "*b K"]:
        """Return the count at the jump to which bisection has converged."""
        return jnp.ceil(y - 1e-6)


def _summed_quantile(rate: Float[Array, "*s"], u: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return how many counts have P(Y <= count) < u, by summing P(Y = k) = P(Y = k - 1) rate / k."""

    def add(k: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        count, term, total = state
        count = count + (total < u)
        term = term * rate / (k + 1)
        return count, term, total + term

    nought = jnp.exp(-rate)
    return jax.lax.fori_loop(0, LARGEST_COUNT, add, (jnp.zeros_like(rate), nought, nought))[0]
