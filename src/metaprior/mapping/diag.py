"""`diag`: u integrated out, all covariances between weights dropped (paper, appendix).

q(w | z) = N(A m_u, diag(B + A S_u A')). In whitened terms the explained part has P = L^-T (I - T T') L^-1. Fast and
smooth to optimise; it bounds neither the stated model nor another.
"""

from collections.abc import Sequence

import jax.numpy as jnp

from metaprior.kernels import Kernel
from metaprior.mapping.base import AnyMapping, Conditional, Ends, Prior
from metaprior.mapping.independent import IndependentDraw, row_normals
from metaprior.networks import Wire
from metaprior.noise import Noise, NoiseSizes


class Diag(Conditional):
    """Independent weights given z."""

    def sizes(self, mapping: AnyMapping, input_kernel: Kernel | None, wires: Sequence[Wire]) -> NoiseSizes:
        """Only the rows' own."""
        return NoiseSizes(per_row=row_normals(wires))

    def draw(self, prior: Prior, ends: Sequence[Ends], noise: Noise) -> IndependentDraw:
        """Integrate u."""
        inverse, factor = prior.inverse_root, prior.mapping.factor
        known = jnp.eye(factor.shape[0], dtype=factor.dtype) - factor @ factor.T
        return IndependentDraw(prior, prior.solve(prior.mapping.mean), inverse.T @ known @ inverse, ends)
