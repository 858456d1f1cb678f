"""The Gaussian likelihood: y = f + noise, one noise level per output, learned or fixed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods.base import OutputLikelihood
from metaprior.types import Leaf

#: The fraction of training for which a learned noise level is held at its small starting value. Without this,
#: mean-field networks and the global MetaGP tend to explain small data sets as noise.
NOISE_HOLD = 0.8


class Gaussian(OutputLikelihood):
    """N(y; f, noise^2)."""

    log_noise: Float[Leaf, "*s K"]
    learned: bool = eqx.field(static=True, default=True)
    hold: float = eqx.field(static=True, default=NOISE_HOLD)

    @property
    def noise(self) -> Float[Array, "*s K"]:
        """The standard deviation of the noise of every output."""
        return jnp.exp(self.log_noise)

    @property
    def is_gaussian(self) -> bool:
        """Yes."""
        return True

    def log_prob(self, f: Float[Array, "*b K"], y: Float[Array, "*c P"]) -> Float[Array, "*d"]:
        """Return -((y - f) / noise)^2 / 2 - log noise - log(2 pi) / 2, summed."""
        return jnp.sum(-0.5 * ((y - f) / self.noise) ** 2 - self.log_noise - 0.5 * np.log(2 * np.pi), axis=-1)

    def mean(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return f."""
        return f

    def variance(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return noise^2."""
        return jnp.broadcast_to(self.noise**2, f.shape)

    def cdf(self, f: Float[Array, "*b K"], y: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return Phi((y - f) / noise)."""
        return jax.scipy.stats.norm.cdf(y, f, self.noise)

    def from_uniform(self, f: Float[Array, "*b K"], u: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return f + noise Phi^-1(u)."""
        return f + self.noise * jax.scipy.stats.norm.ppf(u)

    def nodes(
        self, f: Float[Array, "*b K"], turn: Leaf | float = 0.0
    ) -> tuple[Float[Array, "R *b P"], Float[Array, "R *b"]]:
        """Return Gauss-Hermite nodes for one output, or the lattice of the base class for several."""
        if f.shape[-1] > 1:
            return super().nodes(f, turn)
        points, weights = np.polynomial.hermite_e.hermegauss(8)
        shape = (8, *[1] * (f.ndim - 1))
        y = f[None] + self.noise * points.reshape(*shape, 1)
        return y, jnp.broadcast_to((weights / weights.sum()).reshape(shape), y.shape[:-1])

    def expected_log_prob(
        self,
        mean: Float[Array, "B K"],
        covariance: Float[Array, "B K K"],
        y: Float[Array, "B P"],
        normals: Float[Array, "B R"],
    ) -> Float[Array, " B"]:
        """Return log N(y; mean, noise^2) - variance / (2 noise^2), summed."""
        variance = jnp.diagonal(covariance, axis1=1, axis2=2)
        return self.log_prob(mean, y) - 0.5 * jnp.sum(variance / self.noise**2, axis=-1)

    def num_expectation_normals(self, num_functions: int) -> int:
        """Return 0, because the expectation has a closed form."""
        return 0

    def functions_at(self, y: np.ndarray, num_functions: int) -> np.ndarray:
        """Return y."""
        return y

    def log_prior(self) -> Float[Array, ""]:
        """Return the log density of log noise for a half-normal noise of unit scale (targets are standardised)."""
        return half_normal_log_density(self.log_noise) if self.learned else jnp.zeros(())

    def release_times(self) -> "Gaussian":
        """Return the time for which the noise is held small, so that the signal is not explained as noise."""
        return eqx.tree_at(lambda g: g.log_noise, self, np.float32(self.hold if self.learned else np.inf))


def half_normal_log_density(log_value: Float[Leaf, "*s"]) -> Float[Array, ""]:
    """Return the log density of log v for v half-normal with unit scale: -v^2 / 2 + log v + log(2 / pi) / 2."""
    return jnp.sum(-0.5 * jnp.exp(2 * log_value) + log_value + 0.5 * np.log(2 / np.pi))
