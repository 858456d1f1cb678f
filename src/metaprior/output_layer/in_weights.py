"""The exact regime of a global output layer, computed in the space of its weights instead of that of the rows.

Where no input kernel modulates the layer, f_o(x) = phi(x)' w_o with Gaussian weights w ~ N(m, L L') of all outputs,
and the rows matter through a few sums alone; W says how often each row counts. With S = Phi' W Phi,
b_o = Phi' W (y_o - Phi m_o) / noise_o^2 and B = I + L' (S / noise_o^2 for every output o) L,

    log p(y | below) = sum_o sum_n W_n log N(y_no; (Phi m_o)_n, noise_o^2) + |L_B^-1 L' b|^2 / 2 - log |B| / 2,

and the posterior of the weights is N(m + A A' b, A A') with A = L L_B^-T. Nothing is approximated, a step costs
N I^2 + (I K)^3 for I units and K outputs, and a row of a prediction costs I K (I K).
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.numerics import jittered_cholesky, jittered_inverse_root, products_of_columns
from metaprior.output_layer.base import Batch, ConditionedGP, FunctionGP
from metaprior.output_layer.blocks import sum_over_blocks
from metaprior.types import Leaf
from metaprior.weight_gp import OutputPrior, OutputRows


class RowSums(eqx.Module):
    """What the posterior of the weights needs of the rows: S = Phi' W Phi, Phi' W y, y' W y, and the sum of weights."""

    gram: Float[Array, "I I"]
    product: Float[Array, "I K"]
    squares: Float[Array, " K"]
    count: Float[Array, ""]

    @classmethod
    def of(cls, gp: FunctionGP, batch: Batch) -> "RowSums":
        """Sum over all rows. Cost N I^2."""

        def of_block(block: Batch) -> "RowSums":
            h, weight = gp.activations(block.x), jnp.asarray(block.weight)
            # a row that weighs nothing may hold any y
            y = jnp.where(weight[:, None] > 0, block.y, 0)
            columns = jnp.concatenate([h, y], axis=1) * jnp.sqrt(weight)[:, None]
            # scaled after the sum: the product is small and the rows are many
            scale = jnp.concatenate([gp.prior.scale, jnp.ones(y.shape[1], h.dtype)])
            product, size = products_of_columns(columns) * scale * scale[:, None], h.shape[1]
            squares = jnp.diagonal(product[size:, size:])
            return cls(product[:size, :size], product[:size, size:], squares, jnp.sum(weight))

        return sum_over_blocks(of_block, batch)

    def less_mean(self, mean: Float[Array, "K I"]) -> "RowSums":
        """Return the sums of y - Phi m in place of those of y."""
        explained = self.gram @ mean.T
        squares = self.squares - jnp.sum(mean.T * (2 * self.product - explained), axis=0)
        return RowSums(self.gram, self.product - explained, squares, self.count)


class WeightPosterior(eqx.Module):
    """The weights given the rows: N(mean, root root'), output after output, and the evidence of the rows."""

    mean: Float[Array, " KI"]
    root: Float[Array, "KI KI"]
    log_evidence: Float[Array, ""]

    @classmethod
    def of(cls, gp: FunctionGP, noise: Float[Array, " K"], sums: RowSums) -> "WeightPosterior":
        """Condition the weights on rows that their sums stand for. Cost (I K)^3."""
        mean, covariance = gp.prior.weights()
        num_outputs = gp.prior.num_outputs
        sums = sums.less_mean(mean.reshape(num_outputs, -1))
        none = jnp.zeros((), covariance.dtype)
        root = jittered_cholesky(covariance, none)[0]
        by_output = root.reshape(num_outputs, -1, len(root))
        seen = jnp.einsum("oia,ij,ojb,o->ab", by_output, sums.gram, by_output, noise**-2, optimize="optimal")
        small_root = jittered_inverse_root(jnp.eye(len(root), dtype=root.dtype) + seen, none)[0]
        posterior_root = root @ small_root.T
        told = posterior_root.T @ (sums.product / noise**2).T.ravel()
        alone = -0.5 * jnp.sum(sums.squares / noise**2) - sums.count * jnp.sum(jnp.log(noise))
        alone = alone - 0.5 * num_outputs * sums.count * np.log(2 * np.pi)
        log_evidence = alone + 0.5 * jnp.sum(told**2) + jnp.sum(jnp.log(jnp.diagonal(small_root)))
        return cls(mean + posterior_root @ told, posterior_root, log_evidence)


class ConditionedWeights(ConditionedGP):
    """The posterior of the functions through that of the weights: their mean, and a root of their covariance."""

    mean: Float[Array, "K I"]
    root: Float[Array, "K I KI"]

    @classmethod
    def of(cls, gp: FunctionGP, noise: Float[Array, " K"], batch: Batch) -> "ConditionedWeights":
        """Condition on rows."""
        weights = WeightPosterior.of(gp, noise, RowSums.of(gp, batch))
        shape = (gp.prior.num_outputs, -1)
        return cls(gp, weights.mean.reshape(shape), weights.root.reshape(*shape, len(weights.root)))

    def moments_of_part(self, part: OutputPrior, rows: OutputRows) -> tuple[Float[Array, "B K"], Float[Array, "B K K"]]:
        """Return every row's mean and the covariance of its outputs, a sum of squares. Cost B K^2 I^2.

        Without an input kernel there is one additive part: the whole.
        """
        spread = self._spread(rows)
        return rows.phi @ self.mean.T, jnp.einsum("kbj,lbj->bkl", spread, spread)

    def covariance_of_part(self, part: OutputPrior, a: OutputRows, b: OutputRows) -> Float[Array, "KA KB"]:
        """Return phi R R' phi'. Cost K^2 I (A + B) I + K^2 A B (K I)."""
        on_a, on_b = self._spread(a), self._spread(b)
        return on_a.reshape(-1, on_a.shape[2]) @ on_b.reshape(-1, on_b.shape[2]).T

    def _spread(self, rows: OutputRows) -> Float[Array, "K B KI"]:
        """Return a root of the covariance of the outputs at rows: phi times the root of the weights' covariance."""
        return jnp.einsum("bi,kij->kbj", rows.phi, self.root)

    def num_normals(self) -> int:
        """Return the number of weights."""
        return self.root.shape[-1]

    def function(self, normals: Float[Array, " n"]) -> "WeightedFunction":
        """Return the function of weights drawn from their posterior."""
        return WeightedFunction(self.gp, self.mean + self.root @ normals)


class WeightedFunction(eqx.Module):
    """A function of given output weights."""

    gp: FunctionGP
    weights: Float[Leaf, "K I"]

    def __call__(self, x: Float[Array, "B D"]) -> Float[Array, "B K"]:
        """Return its values. Cost B I K."""
        return self.gp.rows(x).phi @ self.weights.T
