"""The Poisson likelihood: counts with rate exp(f).

All of it costs the same for counts of any size. Written with t = f - log y, the log probability has no difference of
large numbers: log p(y | f) = -y (e^t - 1 - t) + log p(y | log y).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods.base import OutputLikelihood
from metaprior.likelihoods.incomplete_gamma import FEWEST, upper_incomplete_gamma
from metaprior.likelihoods.invert import invert

#: Up to this rate `quick_quantile` sums probabilities, and then a quantile is at most this count.
SMALL_RATE, LARGEST_COUNT = 10.0, 48
#: Larger logarithms of a rate count as this one, so that the square of a rate is a float.
LARGEST_LOG_RATE = 300.0
#: Standard deviations from the rate within which any quantile lies: no float is a probability beyond them.
BELOW, ABOVE = 40.0, 12.0
#: Counts from which on Stirling's series has the digits of float64.
STIRLING_FROM = 16


class Poisson(OutputLikelihood):
    """P(y | f) = exp(f y - exp(f)) / y!."""

    def log_prob(self, f: Float[Array, "*b K"], y: Float[Array, "*c P"]) -> Float[Array, "*d"]:
        """Return y f - exp(f) - log y!, summed."""
        f, y = jnp.broadcast_arrays(jnp.minimum(f, LARGEST_LOG_RATE), y)
        some = jnp.where(y > 0, y, 1)
        t = f - jnp.log(some)
        each = jnp.where(y > 0, _log_prob_at_own_rate(some) - some * (jnp.expm1(t) - t), -jnp.exp(f))
        return jnp.sum(each, axis=-1)

    def mean(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return the rate."""
        return _rate(f)

    def variance(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return the rate."""
        return _rate(f)

    def cdf(self, f: Float[Array, "*b K"], y: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return P(Y <= y) = Q(floor(y) + 1, rate): a sum for few counts, an expansion for more."""
        f, y = jnp.broadcast_arrays(f, y)
        whole, rate = jnp.floor(y), _rate(f)
        many = upper_incomplete_gamma(jnp.maximum(whole + 1, FEWEST), rate)
        return jnp.where(whole < 0, 0, jnp.where(whole + 1 < FEWEST, _summed_cdf(rate, whole), many))

    def from_uniform(self, f: Float[Array, "*b K"], u: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return the smallest count whose distribution function reaches u."""
        f, u = jnp.broadcast_arrays(f, u)
        rate = _rate(f)
        low, high = jnp.maximum(rate - BELOW * jnp.sqrt(rate), 0) - 0.5, rate + ABOVE * jnp.sqrt(rate) + 30
        return self.attained(invert(lambda y: self.cdf(f, y), u, low, high))

    def quick_quantile(self, f: Float[Array, "*b K"], u: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return the quantile; for rates above 10 by a Cornish-Fisher expansion, which is at most a few counts off."""
        f, u = jnp.broadcast_arrays(f, u)
        rate, z = _rate(f), jax.scipy.stats.norm.ppf(u)
        expanded = jnp.maximum(jnp.ceil(rate + jnp.sqrt(rate) * z + (z * z - 1) / 6 - 0.5), 0)
        return jnp.where(rate > SMALL_RATE, expanded, _summed_quantile(jnp.minimum(rate, SMALL_RATE), u))

    def functions_at(self, y: np.ndarray, num_functions: int) -> np.ndarray:
        """Return log(y + 1/2)."""
        return np.log(y + 0.5)

    def attained(self, y: Float[Array, "*b K"]) -> Float[Array, "*b K"]:
        """Return the count at the jump to which bisection has converged."""
        return jnp.ceil(y - 1e-6)


def _rate(f: Float[Array, "*s"]) -> Float[Array, "*s"]:
    return jnp.exp(jnp.minimum(f, LARGEST_LOG_RATE))


def _log_prob_at_own_rate(y: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return y log y - y - log y! for counts above 0, from Stirling's series where they are many."""
    few, many = jnp.minimum(y, STIRLING_FROM), jnp.maximum(y, STIRLING_FROM)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / many**2) / many**2) / many
    expanded = -0.5 * jnp.log(2 * np.pi * many) - series
    return jnp.where(y < STIRLING_FROM, few * jnp.log(few) - few - jax.lax.lgamma(few + 1), expanded)


def _summed_cdf(rate: Float[Array, "*s"], count: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return P(Y <= count) for counts below `FEWEST`, by summing P(Y = k) = P(Y = k - 1) rate / k."""

    def add(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        total, term = state
        return total + jnp.where(k <= count, term, 0), term * rate / (k + 1)

    return jax.lax.fori_loop(0, FEWEST, add, (jnp.zeros_like(rate), jnp.exp(-rate)))[0]


def _summed_quantile(rate: Float[Array, "*s"], u: Float[Array, "*s"]) -> Float[Array, "*s"]:
    """Return how many counts have P(Y <= count) < u, by summing P(Y = k) = P(Y = k - 1) rate / k."""

    def add(k: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        count, term, total = state
        count = count + (total < u)
        term = term * rate / (k + 1)
        return count, term, total + term

    nought = jnp.exp(-rate)
    return jax.lax.fori_loop(0, LARGEST_COUNT, add, (jnp.zeros_like(rate), nought, nought))[0]
