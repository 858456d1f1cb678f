"""`inducing_rows`: the collapsed bound with M inducing rows, which are mapped through the same draw below.

With Q = K_nm K_mm^-1 K_mn, A = L^-1 K_mn / noise and B = I + A A',

    log p(y | below) >= log N(y; m, Q + noise^2 I) - sum_n log(1 + (k_nn - q_nn) / noise^2) / 2,

which is tighter (Titsias 2025) than the trace tr(K - Q) / (2 noise^2) of Titsias (2009), at the same cost. It needs
sums over rows: A A', A y, y'y and the last term. Rows are processed in blocks, so memory is bounded for any number of
rows. Cost N M^2 + M^3 per draw (M counts rows times outputs).
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods import Likelihood
from metaprior.numerics import jittered_cholesky, jittered_inverse_root, products_of_columns
from metaprior.output_layer.base import Batch, FunctionGP, JointRows, OutputLayer, by_output, noise_of
from metaprior.output_layer.blocks import sum_over_blocks
from metaprior.types import Fixed, Leaf
from metaprior.weight_gp import OutputRows


class InducingRows(OutputLayer):
    """The output layer integrated by inducing rows; `rows` holds the data once the fit has ended."""

    points: Float[Leaf, "M D"]
    rows: Fixed | None = None
    jitter: float = eqx.field(static=True, default=1e-6)

    def bound(
        self, gp: FunctionGP, likelihood: Likelihood, batch: Batch, normals: Float[Array, "B R"]
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Return the collapsed bound of all rows, or of fewer that count for more."""
        at = gp.rows(self.points)
        inverse_root = self._inverse_root(gp, at)
        sums = _sums(gp, likelihood, batch, at, inverse_root)
        small = jnp.eye(len(inverse_root), dtype=inverse_root.dtype) + sums.gram
        small_root = jittered_inverse_root(small, jnp.zeros((), small.dtype))[0]
        log_noise = jnp.sum(sums.count * jnp.log(noise_of(likelihood)))
        log_factor = jnp.sum(jnp.log(jnp.diagonal(small_root)))
        constant = 0.5 * np.log(2 * np.pi) * jnp.sum(sums.count) + log_noise - log_factor
        return 0.5 * (jnp.sum((small_root @ sums.product) ** 2) - sums.squares - sums.missed) - constant, {}

    def conditioned(self, gp: FunctionGP, likelihood: Likelihood) -> "InducedRows":
        """Return the posterior given by the inducing rows: f there is N(m + L B^-1 A y, L B^-1 L')."""
        assert self.rows is not None
        at = gp.rows(self.points)
        inverse_root = self._inverse_root(gp, at)
        sums = _sums(gp, likelihood, self.rows.value, at, inverse_root)
        eye = jnp.eye(len(inverse_root), dtype=inverse_root.dtype)
        small_root = jittered_inverse_root(eye + sums.gram, jnp.zeros((), eye.dtype))[0]
        alpha = inverse_root.T @ (small_root.T @ (small_root @ sums.product))
        # what the inducing values explain, less their own uncertainty: L^-T (I - B^-1) L^-1
        learned = jittered_cholesky(eye - small_root.T @ small_root, jnp.zeros((), eye.dtype))[0]
        explained = learned.T @ inverse_root
        return InducedRows(gp, at, alpha.reshape(gp.prior.num_outputs, -1), explained, inverse_root, small_root)

    def with_rows(self, rows: Batch) -> "InducingRows":
        """Return the regime with the data stored."""
        return InducingRows(self.points, Fixed(rows), self.jitter)

    def _inverse_root(self, gp: FunctionGP, at: OutputRows) -> Float[Array, "R R"]:
        gram = gp.prior.covariance(at, at)
        return jittered_inverse_root(gram, jnp.asarray(self.jitter, gram.dtype))[0]


class InducedRows(JointRows):
    """The posterior given by inducing rows, whose values are themselves uncertain."""

    inverse_root: Float[Array, "KR KR"]
    small_root: Float[Array, "KR KR"]

    def update(self, prior_values: Float[Array, "K R"], normals: Float[Array, "K R"]) -> Float[Array, "K R"]:
        """Return K_mm^-1 (f_m - prior values) for a draw f_m = L (B^-1 A y + L_B^-T normals) of the inducing values."""
        gap = self.small_root.T @ normals.ravel() - self.inverse_root @ prior_values.ravel()
        return self.alpha + (self.inverse_root.T @ gap).reshape(normals.shape)


class _Sums(eqx.Module):
    """The sums over rows that the bound needs."""

    gram: Float[Array, "R R"]
    product: Float[Array, " R"]
    squares: Float[Array, ""]
    missed: Float[Array, ""]
    count: Float[Array, " K"]


def _sums(
    gp: FunctionGP, likelihood: Likelihood, batch: Batch, at: OutputRows, inverse_root: Float[Array, "R R"]
) -> _Sums:
    """Sum over all rows."""
    return sum_over_blocks(lambda block: _of_block(gp, likelihood, block, at, inverse_root), batch)


def _of_block(
    gp: FunctionGP, likelihood: Likelihood, block: Batch, at: OutputRows, inverse_root: Float[Array, "R R"]
) -> _Sums:
    rows, num_outputs = gp.rows(block.x), gp.prior.num_outputs
    # sqrt(weight) / noise, which is 0 for padding
    level = by_output(jnp.sqrt(block.weight)[:, None] / noise_of(likelihood))
    scaled = (inverse_root @ gp.prior.covariance(at, rows)) * level
    y = jnp.where(level > 0, by_output(jnp.asarray(block.y)) - gp.prior.mean(rows).ravel(), 0) * level
    own = jnp.diagonal(gp.prior.own_covariance(rows), axis1=1, axis2=2)
    weight = jnp.tile(block.weight, num_outputs)
    gap = jnp.maximum(by_output(own) * level**2 - jnp.sum(scaled**2, axis=0), 0) / jnp.where(weight > 0, weight, 1)
    count = jnp.repeat(jnp.sum(block.weight)[None], num_outputs)
    return _Sums(products_of_columns(scaled.T), scaled @ y, jnp.sum(y**2), weight @ jnp.log1p(gap), count)
