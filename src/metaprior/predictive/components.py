"""The additive parts of the functions of an integrated output layer: what each has learned, beside the others.

With an input kernel k = sum_c k_c the functions are sums f = sum_c f_c of independent Gaussian processes. Given the
data they are dependent, and each is Gaussian given a draw of what is below:

    E f_c(x) = cov(f_c(x), f) K^-1 y,   cov(f_c(x), f_c(x')) = k_c(x, x') - cov(f_c(x), f) K^-1 cov(f, f_c(x')).

The data say little of the level of one part, as another can take it over. So each part is seen around its own average
over some rows, g_c(x) = f_c(x) - mean_n f_c(x_n), and these averages are one number for the sum.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.compilation import compiled, in_float64
from metaprior.output_layer import ConditionedGP
from metaprior.predictive.integrated import IntegratedDraws
from metaprior.predictive.stacked import StackedPosteriors
from metaprior.weight_gp import OutputPrior, OutputRows

#: The most rows that a part is averaged over: of more, as many are taken evenly.
MOST_AROUND = 256


class PartMoments(NamedTuple):
    """The parts over all draws of what is below: means and variances, [parts, N, K], and the average, [K]."""

    mean: np.ndarray
    variance: np.ndarray
    average: np.ndarray


def part_moments(draws: IntegratedDraws, around: np.ndarray) -> PartMoments:
    """Return the moments of every additive part around its average over the rows `around`, and that of the sum."""
    chosen = around[np.linspace(0, len(around) - 1, min(len(around), MOST_AROUND)).round().astype(int)]
    share = np.zeros(MOST_AROUND)
    share[: len(chosen)] = 1 / len(chosen)
    centre = np.pad(chosen, ((0, MOST_AROUND - len(chosen)), (0, 0)), mode="edge")
    means, variances, average = [], [], np.zeros(())
    for rows, padded in draws.padded_chunks():
        with in_float64():
            arrays = (jnp.asarray(array) for array in (padded, centre, share))
            mean, variance, level = (np.asarray(part) for part in _part_moments(draws.posterior, *arrays))
        mean, variance = (part[:, :, : rows.stop - rows.start] for part in (mean, variance))
        means.append(np.mean(mean, axis=0))
        variances.append(np.mean(variance, axis=0) + np.var(mean, axis=0))
        average = np.mean(np.sum(level, axis=1), axis=0)
    return PartMoments(np.concatenate(means, axis=1), np.concatenate(variances, axis=1), average)


@compiled
def _part_moments(
    posterior: StackedPosteriors, x: Float[Array, "B D"], centre: Float[Array, "C D"], share: Float[Array, " C"]
) -> tuple[Array, Array, Array]:
    def of_draw(own: ConditionedGP) -> tuple[Array, ...]:
        rows, around = own.gp.rows(x), own.gp.rows(centre)
        found = [_centred(own, part, rows, around, share) for part in own.gp.prior.additive_parts()]
        return tuple(jnp.stack(column) for column in zip(*found, strict=True))

    mean, variance, level = posterior.each(of_draw)
    return mean, variance, level


def _centred(
    own: ConditionedGP, part: OutputPrior, rows: OutputRows, around: OutputRows, share: Float[Array, " C"]
) -> tuple[Array, Array, Array]:
    """Return mean and variance of one part less its average, [B, K], and the mean of the average, [K]."""
    num_outputs = part.num_outputs
    (mean, own_covariance), (mean_around, _) = (own.moments_of_part(part, r) for r in (rows, around))
    level = share @ mean_around

    def averaged(a: OutputRows) -> Float[Array, "A K"]:
        """The covariance of every value with the average of the same output."""
        covariance = own.covariance_of_part(part, a, around).reshape(num_outputs, len(a.phi), num_outputs, -1)
        return jnp.einsum("kakc,c->ak", covariance, share)

    variance = jnp.diagonal(own_covariance, axis1=1, axis2=2) - 2 * averaged(rows) + share @ averaged(around)
    return mean - level, jnp.maximum(variance, 0), level
