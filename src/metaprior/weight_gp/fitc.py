"""`fitc`: draw u, then independent weights with the conditional's variances (the paper's diagonal approximation).

q(w | z, u) = N(A u, diag(B)). With u integrated out this is the FITC of the paper's appendix: the correlations that u
explains are kept. The objective is a lower bound for a model with a diagonal conditional, not for the stated model.
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
        """Return the normals of v and of each row."""
        return NormalCounts(weights=sparse_gp.n_inducing, per_row=row_normals(weight_layers))

    def draw(
        self, prior: GPContext, layer_latents: Sequence[LayerLatents], normals: StandardNormals
    ) -> IndependentDraw:
        """Return independent weights given a draw of u; here P = K_uu^-1."""
        v, inverse = prior.sparse_gp.draw(normals.weights), prior.inverse_root
        return IndependentDraw(prior, prior.solve(v), inverse.T @ inverse, layer_latents)
