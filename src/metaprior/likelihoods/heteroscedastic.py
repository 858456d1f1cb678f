"""The Gaussian likelihood whose noise depends on the input: each output has a function f and a noise function g.

noise(x)^2 = floor^2 + (level exp(gain g(x)))^2, where f and g have the same prior. The gain starts small and, like the
level, is held at first, because a network that can explain everything as noise learns no signal.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods.base import OutputLikelihood
from metaprior.likelihoods.gaussian import NOISE_HOLD, Gaussian, half_normal_log_density
from metaprior.types import Leaf

#: The smallest noise, in standard deviations of the targets. With targets free of noise the density would be unbounded.
FLOOR = 0.01
START_GAIN = 0.1
#: Larger logarithms of the noise count as this one, so that its square is a float in any units of the targets.
LARGEST_LOG_NOISE = 100.0


class Heteroscedastic(OutputLikelihood):
    """N(y; f, noise(g)^2). The functions of the network are the f of all outputs, followed by the g of all outputs."""

    log_noise: Float[Leaf, "*s K"]
    log_gain: Float[Leaf, "*s K"]
    hold: float = eqx.field(static=True, default=NOISE_HOLD)

    @classmethod
    def initial(cls, log_noise: np.ndarray, hold: float = NOISE_HOLD) -> "Heteroscedastic":
        """Start with nearly the same noise everywhere."""
        return cls(log_noise, np.full_like(log_noise, np.log(START_GAIN)), hold)

    def num_functions(self, num_outputs: int) -> int:
        """Return two functions for every output."""
        return 2 * num_outputs

    def num_outputs(self, f: Float[Array, "*b F"]) -> int:
        """Return half the number of functions."""
        return f.shape[-1] // 2

    def _seen(self, f: Float[Array, "*b F"]) -> tuple[Gaussian, Float[Array, "*b K"]]:
        """Return a Gaussian likelihood with the noise at every f, and the mean."""
        half = self.num_outputs(f)
        log_noise = jnp.minimum(self.log_noise + jnp.exp(self.log_gain) * f[..., half:], LARGEST_LOG_NOISE)
        return Gaussian(0.5 * jnp.logaddexp(2 * log_noise, 2 * np.log(FLOOR))), f[..., :half]

    @property
    def is_gaussian(self) -> bool:
        """Yes."""
        return True

    def log_prob(self, f: Float[Array, "*b F"], y: Float[Array, "*c P"]) -> Float[Array, "*d"]:
        """Return the log density of the Gaussian, summed."""
        gaussian, mean = self._seen(f)
        return gaussian.log_prob(mean, y)

    def mean(self, f: Float[Array, "*b F"]) -> Float[Array, "*b P"]:
        """Return f."""
        return self._seen(f)[1]

    def variance(self, f: Float[Array, "*b F"]) -> Float[Array, "*b P"]:
        """Return noise(g)^2."""
        return self._seen(f)[0].noise ** 2

    def cdf(self, f: Float[Array, "*b F"], y: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return the distribution function of the Gaussian."""
        gaussian, mean = self._seen(f)
        return gaussian.cdf(mean, y)

    def from_uniform(self, f: Float[Array, "*b F"], u: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return the quantile of the Gaussian."""
        gaussian, mean = self._seen(f)
        return gaussian.from_uniform(mean, u)

    def nodes(
        self, f: Float[Array, "*b F"], turn: Leaf | float = 0.0
    ) -> tuple[Float[Array, "R *b P"], Float[Array, "R *b"]]:
        """Return the nodes and weights of the Gaussian."""
        gaussian, mean = self._seen(f)
        return gaussian.nodes(mean, turn)

    def functions_at(self, y: np.ndarray, num_functions: int) -> np.ndarray:
        """Return y, and the usual noise."""
        return np.concatenate([y, np.zeros_like(y)], axis=1)

    def log_prior(self) -> Float[Array, ""]:
        """Return the log density of a half-normal level and a half-normal gain, both of unit scale."""
        return half_normal_log_density(self.log_noise) + half_normal_log_density(self.log_gain)

    def release_times(self) -> "Heteroscedastic":
        """Return the time for which the level and the gain are held."""
        hold = np.float32(self.hold)
        return eqx.tree_at(lambda h: (h.log_noise, h.log_gain), self, (hold, hold))
