"""The additive parts of the functions of an integrated output layer: what each has learned, beside the others.

With an input kernel k = sum_c k_c the functions are sums f = sum_c f_c of independent Gaussian processes. Given the
data they are dependent, and each is Gaussian given a draw of what is below:

    E f_c(x) = cov(f_c(x), f) K^-1 y,   var f_c(x) = k_c(x, x) - cov(f_c(x), f) K^-1 cov(f, f_c(x)).

The means of the parts add up to that of the whole; the variances do not.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.compilation import compiled, in_float64
from metaprior.output_layer import ConditionedGP
from metaprior.predictive.integrated import IntegratedDraws
from metaprior.predictive.stacked import StackedPosteriors


def part_moments(draws: IntegratedDraws) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of every additive part, over all draws of what is below, [parts, N, K] each."""
    means, variances = [], []
    for rows, padded in draws.padded_chunks():
        size = rows.stop - rows.start
        with in_float64():
            found = _part_moments(draws.posterior, jnp.asarray(padded))
            mean, variance = (np.asarray(part)[:, :, :size] for part in found)
        means.append(np.mean(mean, axis=0))
        variances.append(np.mean(variance, axis=0) + np.var(mean, axis=0))
    return np.concatenate(means, axis=1), np.concatenate(variances, axis=1)


@compiled
def _part_moments(posterior: StackedPosteriors, x: Float[Array, "B D"]) -> tuple[Array, Array]:
    def of_draw(own: ConditionedGP) -> tuple[Array, Array]:
        rows = own.gp.rows(x)
        found = [own.moments_of_part(part, rows) for part in own.gp.prior.additive_parts()]
        variances = [jnp.maximum(jnp.diagonal(covariance, axis1=1, axis2=2), 0) for _, covariance in found]
        return jnp.stack([mean for mean, _ in found]), jnp.stack(variances)

    return posterior.each(of_draw)
