"""`diag`: u is integrated out, and all covariances between weights are dropped (paper, appendix).

q(w | z) = N(A m_u, diag(B + A S_u A')). In whitened terms the explained part has P = L^-T (I - T T') L^-1. This is fast
and smooth to optimise, but the objective is not a lower bound, neither for the stated model nor for another one.
"""

from collections.abc import Sequence

import jax.numpy as jnp

from metaprior.kernels import Kernel
from metaprior.networks import WeightLayer
from metaprior.random import NormalCounts, StandardNormals
from metaprior.weight_gp.base import AnySparseGP, Conditional, GPContext, LayerLatents
from metaprior.weight_gp.independent import IndependentDraw, row_normals


class Diag(Conditional):
    """Independent weights given z."""

    def sizes(
        self, sparse_gp: AnySparseGP, input_kernel: Kernel | None, weight_layers: Sequence[WeightLayer]
    ) -> NormalCounts:
        """Return the normals of each row; nothing else is drawn."""
        return NormalCounts(per_row=row_normals(weight_layers))

    def draw(
        self, prior: GPContext, layer_latents: Sequence[LayerLatents], normals: StandardNormals
    ) -> IndependentDraw:
        """Return independent weights with u integrated out."""
        inverse, factor = prior.inverse_root, prior.sparse_gp.factor
        known = jnp.eye(factor.shape[0], dtype=factor.dtype) - factor @ factor.T
        return IndependentDraw(prior, prior.solve(prior.sparse_gp.mean), inverse.T @ known @ inverse, layer_latents)
