"""The paper's formulation of the local model, as printed: a W x M matrix for every row of the data.

K_fu^(n) = k_w(C_w, C_u) * k_aux(x_n, U), A = K_fu K_uu^-1, w_n ~ N(A u, diag(K_ff - A K_uf)). Cost B |w| M^2. It has
every optimisation that keeps the formula: k_w(C_w, C_u) is computed once for all rows, u is drawn once per draw, rows
are processed one by one so that memory holds one W x M matrix, and pre-activations are drawn instead of weights.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.networks import Layer, WeightLayer
from metaprior.random import NormalCounts, StandardNormals
from metaprior.weight_gp import Conditional, ConditionalDraw, GPContext, LayerLatents, SparseGP
from metaprior.weight_gp.base import input_scales


class PaperConditional(Conditional):
    """w_n ~ N(A_n u, diag B_n), computed for every weight."""

    def sizes(
        self, sparse_gp: SparseGP, input_kernel: Kernel | None, weight_layers: Sequence[WeightLayer]
    ) -> NormalCounts:
        """Return one normal per inducing value, and one per output unit and row."""
        return NormalCounts(weights=sparse_gp.n_inducing, per_row=sum(len(w.outputs) for w in weight_layers))

    def draw(self, prior: GPContext, ends: Sequence[LayerLatents], normals: StandardNormals) -> "PaperDraw":
        """Draw u."""
        return PaperDraw(prior, list(ends), prior.sparse_gp.draw(normals.weights))


class PaperDraw(ConditionalDraw):
    """One draw of u."""

    prior: GPContext
    ends: list[LayerLatents]
    v: Float[Array, " M"]

    def _columns(self, ends: LayerLatents) -> Float[Array, "W M"]:
        sparse_gp = self.prior.sparse_gp
        left, right = (
            sparse_gp.kernel_in(ends.z_in, sparse_gp.code_in),
            sparse_gp.kernel_out(ends.z_out, sparse_gp.code_out),
        )
        return (left[:, None] * right[None]).reshape(-1, left.shape[1])

    def at(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return layers that compute the moments of all weights, row by row."""
        prior, cross = self.prior, self.prior.cross_aux(eps)
        alpha = prior.solve(self.v)
        normals = jnp.split(rows, np.cumsum([e.z_out.shape[0] for e in self.ends])[:-1].tolist(), axis=1)

        def layer(ends: LayerLatents, own: Array) -> Layer:
            columns, num_in, num_out = self._columns(ends), ends.z_in.shape[0], ends.z_out.shape[0]
            noise = (prior.weight_noise.std_in(ends.z_in)[:, None] * prior.weight_noise.std_out(ends.z_out)) ** 2

            @jax.checkpoint
            def of_row(args: tuple) -> Array:
                h, a, normal = args
                k_fu = columns * a
                root = k_fu @ prior.inverse_root.T
                mean = (k_fu @ alpha).reshape(num_in, num_out)
                # stationary kernels of unit variance: K_ff = 1
                variance = (1 - jnp.sum(root * root, axis=1)).reshape(num_in, num_out) + noise
                return h @ mean + jnp.sqrt(jnp.maximum((h * h) @ variance, 1e-12)) * normal

            scales = input_scales(ends.scale, num_in)
            return lambda h: jax.lax.map(of_row, (h * scales, cross, own))

        return [layer(ends, own) for ends, own in zip(self.ends, normals, strict=True)]

    def weights(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Array]:
        """Raise an error: training does not need the weights."""
        raise NotImplementedError("weights: the benchmark only trains, which does not need them.")
