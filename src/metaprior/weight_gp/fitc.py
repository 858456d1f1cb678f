"""`fitc`: u drawn, then independent weights with the conditional's variances (the paper's diagonal approximation).

q(w | z, u) = N(A u, diag(B)). With u integrated this is the appendix's FITC: the correlations that u explains are
kept. It bounds a model whose conditional is diagonal, not the stated one.
"""

from collections.abc import Sequence

from metaprior.kernels import Kernel
from metaprior.networks import WeightLayer
from metaprior.random import NormalCounts, StandardNormals
from metaprior.weight_gp.base import AnySparseGP, Conditional, GPContext, LayerLatents
from metaprior.weight_gp.independent import IndependentDraw, row_normals


class FITC(Conditional):
    """Independent weights given z and u."""

    def sizes(
        self, sparse_gp: AnySparseGP, input_kernel: Kernel | None, weight_layers: Sequence[WeightLayer]
    ) -> NormalCounts:
        """Normals for v, and the rows' own."""
        return NormalCounts(weights=sparse_gp.n_inducing, per_row=row_normals(weight_layers))

    def draw(
        self, prior: GPContext, layer_latents: Sequence[LayerLatents], normals: StandardNormals
    ) -> IndependentDraw:
        """Draw u; P = K_uu^-1."""
        v, inverse = prior.sparse_gp.draw(normals.weights), prior.inverse_root
        return IndependentDraw(prior, prior.solve(v), inverse.T @ inverse, layer_latents)
