"""`exact`: log p(y | below) = log N(y; m, K + noise^2 I), with Gaussian noise. Cost (N K)^3 / 3 per draw.

The posterior of the functions is that of GP regression. Rows with weight 0 (padding) do not affect the result.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods import Likelihood
from metaprior.numerics import gaussian_log_density_of, jittered_inverse_root
from metaprior.output_layer.base import Batch, FunctionGP, ObservedRows, OutputLayer, by_output, noise_of
from metaprior.types import Fixed
from metaprior.weight_gp import OutputRows


class Exact(OutputLayer):
    """The output layer integrated exactly; `rows` holds the data once the fit has ended."""

    rows: Fixed | None = None

    def bound(
        self, gp: FunctionGP, likelihood: Likelihood, batch: Batch, normals: Float[Array, "B R"]
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Return the evidence of the batch, which must contain all rows."""
        rows, covariance, residual, real = self._observed(gp, likelihood, batch)
        constant = 0.5 * np.log(2 * np.pi) * jnp.sum(1 - real)  # the part that padded rows add
        return gaussian_log_density_of(covariance, residual) + constant, {}

    def conditioned(self, gp: FunctionGP, likelihood: Likelihood) -> ObservedRows:
        """Return the posterior of GP regression. Cost (N K)^3."""
        assert self.rows is not None
        batch: Batch = self.rows.value
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
