"""`exact`: log p(y | below) = log N(y; m, K + noise^2 I), with Gaussian noise. Cost (N K)^3 / 3 per draw.

The posterior of the functions is that of GP regression. Rows with weight 0 (padding) do not affect the result.
A layer without an input kernel has no more weights than units times outputs; with fewer of them than rows, the same
numbers come from the weights (`in_weights`) at a cost that is linear in the rows.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods import Likelihood
from metaprior.numerics import gaussian_log_density_of, jittered_inverse_root
from metaprior.output_layer.base import Batch, FunctionGP, ObservedRows, OutputLayer, by_output, noise_of
from metaprior.output_layer.in_weights import ConditionedWeights, RowSums, WeightPosterior
from metaprior.types import Fixed
from metaprior.weight_gp import OutputRows


class Exact(OutputLayer):
    """The output layer integrated exactly; `rows` holds the data once the fit has ended."""

    rows: Fixed | None = None

    def bound(
        self, gp: FunctionGP, likelihood: Likelihood, batch: Batch, normals: Float[Array, "B R"]
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Return the evidence of the batch, which must contain all rows."""
        if _has_fewer_weights(gp, batch):
            return WeightPosterior.of(gp, noise_of(likelihood), RowSums.of(gp, batch)).log_evidence, {}
        rows, covariance, residual, real = self._observed(gp, likelihood, batch)
        constant = 0.5 * np.log(2 * np.pi) * jnp.sum(1 - real)  # the part that padded rows add
        return gaussian_log_density_of(covariance, residual) + constant + _repetitions(likelihood, batch), {}

    def conditioned(self, gp: FunctionGP, likelihood: Likelihood) -> ObservedRows | ConditionedWeights:
        """Return the posterior of GP regression. Cost (N K)^3, or N I^2 + (I K)^3 through I weights of each output."""
        assert self.rows is not None
        batch: Batch = self.rows.value
        if _has_fewer_weights(gp, batch):
            return ConditionedWeights.of(gp, noise_of(likelihood), batch)
        rows, covariance, residual, real = self._observed(gp, likelihood, batch)
        explained = jittered_inverse_root(covariance, jnp.zeros((), covariance.dtype))[0] * real
        noise = jnp.repeat(noise_of(likelihood), batch.x.shape[0])
        return ObservedRows.of(gp, rows, explained, residual, noise)

    def with_rows(self, rows: Batch) -> "Exact":
        """Return the regime with the data stored."""
        return Exact(Fixed(rows))

    def _observed(self, gp: FunctionGP, likelihood: Likelihood, batch: Batch) -> tuple[OutputRows, Array, Array, Array]:
        """Return the rows, the covariance of y, y minus its mean, and which entries are not padding."""
        rows, num_outputs = gp.rows(batch.x), gp.prior.num_outputs
        own = jnp.asarray(batch.weight > 0, rows.phi.dtype)
        # Rows with zero activations have zero covariance with every row.
        rows, real = rows._replace(phi=rows.phi * own[:, None]), jnp.tile(own, num_outputs)
        noise = jnp.repeat(noise_of(likelihood), batch.x.shape[0]) ** 2
        spread = jnp.where(real > 0, noise / jnp.maximum(jnp.tile(batch.weight, num_outputs), 1e-30), 1.0)
        covariance = gp.prior.covariance(rows, rows) + jnp.diag(spread)
        y = jnp.where(real > 0, by_output(jnp.asarray(batch.y)), 0)
        return rows, covariance, (y - gp.prior.mean(rows).ravel()) * real, real


def _repetitions(likelihood: Likelihood, batch: Batch) -> Float[Array, ""]:
    """Return what rows add that count w times: they tell of f as one row with the noise's variance over w does.

    log N(y, w times; f, noise^2) = log N(y; f, noise^2 / w) - (w - 1) log(2 pi noise^2) / 2 - log(w) / 2.
    """
    weight = jnp.where(batch.weight > 0, batch.weight, 1)
    logs = jnp.log(2 * np.pi * noise_of(likelihood) ** 2)
    return -0.5 * (jnp.sum(weight - 1) * jnp.sum(logs) + len(logs) * jnp.sum(jnp.log(weight)))


def _has_fewer_weights(gp: FunctionGP, batch: Batch) -> bool:
    """Whether the layer is global and has fewer weights for an output than there are rows."""
    return gp.prior.kernel is None and gp.prior.gram_in.shape[0] < batch.x.shape[0]
