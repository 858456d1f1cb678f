"""`fitc`: u drawn, then independent weights with the conditional's variances (the paper's diagonal approximation).

q(w | z, u) = N(A u, diag(B)). With u integrated this is the appendix's FITC: the correlations that u explains are
kept. It bounds a model whose conditional is diagonal, not the stated one.
"""

from collections.abc import Sequence

from metaprior.kernels import Kernel
from metaprior.mapping.base import AnyMapping, Conditional, Ends, Prior
from metaprior.mapping.independent import IndependentDraw, row_normals
from metaprior.networks import Wire
from metaprior.noise import Noise, NoiseSizes


class FITC(Conditional):
    """Independent weights given z and u."""

    def sizes(self, mapping: AnyMapping, input_kernel: Kernel | None, wires: Sequence[Wire]) -> NoiseSizes:
        """Normals for v, and the rows' own."""
        return NoiseSizes(weights=mapping.num_inducing, per_row=row_normals(wires))

    def draw(self, prior: Prior, ends: Sequence[Ends], noise: Noise) -> IndependentDraw:
        """Draw u; P = K_uu^-1."""
        v, inverse = prior.mapping.draw(noise.weights), prior.inverse_root
        return IndependentDraw(prior, prior.solve(v), inverse.T @ inverse, ends)
