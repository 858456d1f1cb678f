"""`full`: the exact joint Gaussian of all weights, by Matheron's rule on a Kronecker grid.

The codes of a layer form a grid Z_in x Z_out, and k_w is a product. Join the inducing codes to both sides:
a = (Z_in, U_in) and b = (Z_out, U_out). A prior draw on the grid a x b is then G = chol(K_a) E chol(K_b)'. Read f_w
from the blocks of the layers and f_u from the entries (U_in,m, U_out,m). Then w = f_w + K_wu K_uu^-1 (u - f_u)
+ sigma_w eps has exactly the mean and covariance of q(w | z). Cost (H + M)^3 instead of W^3.

An input kernel adds a third factor, over c = (U_aux, eps). The rows of one call are then drawn jointly, so the draw is
coherent over x. The factor is lower triangular with U_aux first, so every row has the same marginal as by itself.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.networks import Layer, WeightLayer
from metaprior.numerics import jittered_cholesky
from metaprior.random import NormalCounts, StandardNormals, take
from metaprior.weight_gp.base import (
    AnySparseGP,
    Conditional,
    ConditionalDraw,
    GPContext,
    LayerLatents,
    input_scales,
    stacked,
)

#: The most rows that the larger factor of a draw may have. Beyond it a draw takes a second and a fit takes hours.
MOST_ROWS = 4000


class Full(Conditional):
    """Jointly Gaussian weights given z; `jitter` is the relative jitter of the grid's factors."""

    jitter: float = eqx.field(static=True, default=1e-6)

    @property
    def couples_rows(self) -> bool:
        """True: in a local model the rows share the third factor."""
        return True

    def _grid(self, sparse_gp: AnySparseGP, weight_layers: Sequence[WeightLayer]) -> tuple[int, int]:
        extra = sparse_gp.n_inducing
        sides = sum(len(w.inputs) for w in weight_layers) + extra, sum(len(w.outputs) for w in weight_layers) + extra
        if max(sides) > MOST_ROWS:
            raise ValueError(
                f"conditional='full': expected at most {MOST_ROWS} units and inducing codes per side of the layers, "
                f"because every draw factors their covariance; got {max(sides)}. Use conditional='pathwise' instead."
            )
        return sides

    def _shapes(
        self, sparse_gp: AnySparseGP, input_kernel: Kernel | None, weight_layers: Sequence[WeightLayer]
    ) -> list[tuple[int, ...]]:
        depth = 1 if input_kernel is None else sparse_gp.n_inducing
        white: list[tuple[int, ...]] = [(len(w.inputs), len(w.outputs)) for w in weight_layers]
        return [(sparse_gp.n_inducing,), (depth, *self._grid(sparse_gp, weight_layers)), *white]

    def sizes(
        self, sparse_gp: AnySparseGP, input_kernel: Kernel | None, weight_layers: Sequence[WeightLayer]
    ) -> NormalCounts:
        """Return the normals of v, the grid (at every U_aux) and sigma_w; in a local model each row adds a grid."""
        shapes = self._shapes(sparse_gp, input_kernel, weight_layers)
        a, b = self._grid(sparse_gp, weight_layers)
        total = int(sum(np.prod(s) for s in shapes))
        return NormalCounts(weights=total, per_row=0 if input_kernel is None else a * b)

    def draw(self, prior: GPContext, layer_latents: Sequence[LayerLatents], normals: StandardNormals) -> "FullDraw":
        """Return a draw with both sides of the grid factored."""
        sparse_gp = prior.sparse_gp
        shapes = self._shapes(sparse_gp, prior.input_kernel, [e.weight_layer for e in layer_latents])
        for_v, grid, *white = take(normals.weights, *shapes)
        side_in = stacked([e.z_in for e in layer_latents], sparse_gp.code_in)
        side_out = stacked([e.z_out for e in layer_latents], sparse_gp.code_out)
        jitter = jnp.asarray(max(self.jitter, 4 * float(jnp.finfo(grid.dtype).eps)), grid.dtype)
        return FullDraw(
            prior,
            jittered_cholesky(sparse_gp.kernel_in(side_in, side_in), jitter)[0],
            jittered_cholesky(sparse_gp.kernel_out(side_out, side_out), jitter)[0],
            sparse_gp.draw(for_v),
            grid,
            [
                prior.weight_noise.std_in(e.z_in)[:, None] * n * prior.weight_noise.std_out(e.z_out)
                for e, n in zip(layer_latents, white, strict=True)
            ],
            [sparse_gp.kernel_in(e.z_in, sparse_gp.code_in) for e in layer_latents],
            [sparse_gp.kernel_out(e.z_out, sparse_gp.code_out) for e in layer_latents],
            [input_scales(e.scale, e.z_in.shape[0])[:, None] for e in layer_latents],
            jitter,
        )


class FullDraw(ConditionalDraw):
    """The factors and normals of the grid, from which the weights at given inputs follow."""

    prior: GPContext
    root_in: Float[Array, "a a"]
    root_out: Float[Array, "b b"]
    v: Float[Array, " M"]
    grid: Float[Array, "K a b"]
    white: list[Array]
    e_in: list[Array]
    e_out: list[Array]
    scales: list[Array]
    jitter: Float[Array, ""]

    def _blocks(self, f: Float[Array, "B a b"]) -> list[Array]:
        out, i, j = [], 0, 0
        for e_in, e_out in zip(self.e_in, self.e_out, strict=True):
            out.append(f[:, i : i + e_in.shape[0], j : j + e_out.shape[0]])
            i, j = i + e_in.shape[0], j + e_out.shape[0]
        return out

    def weights(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the drawn weights: [I, J], or [B, I, J] drawn jointly over the rows in a local model."""
        kernel, sparse_gp = self.prior.input_kernel, self.prior.sparse_gp
        m = np.arange(sparse_gp.n_inducing)
        place_in, place_out = self.root_in.shape[0] - len(m) + m, self.root_out.shape[0] - len(m) + m
        if kernel is None:
            f = jnp.einsum("ac,kcd,bd->kab", self.root_in, self.grid, self.root_out)
            f_u, f_x, a = f[0, place_in, place_out], f, jnp.ones((1, len(m)), f.dtype)
        else:
            normals = jnp.concatenate([self.grid, rows.reshape(-1, *self.grid.shape[1:])])
            points = jnp.concatenate([jnp.asarray(sparse_gp.input_codes, eps.dtype), eps])
            root_aux = jittered_cholesky(kernel(points, points), self.jitter)[0]
            f = jnp.einsum("ac,kcd,bd->kab", self.root_in, normals, self.root_out)
            f = jnp.einsum("nk,kab->nab", root_aux, f)
            f_u, f_x, a = f[m, place_in, place_out], f[len(m) :], self.prior.cross_aux(eps)
        alpha = self.prior.solve(self.v, f_u)
        drawn = [
            scale * (prior + jnp.einsum("im,nm,jm->nij", e_in, a * alpha, e_out) + white)
            for prior, e_in, e_out, white, scale in zip(
                self._blocks(f_x), self.e_in, self.e_out, self.white, self.scales, strict=True
            )
        ]
        return [w[0] for w in drawn] if kernel is None else drawn

    def at(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return h -> h w; in a local model each row has its own weights."""
        weights = self.weights(eps, rows)

        def layer(w: Array) -> Layer:
            return (lambda h: h @ w) if w.ndim == 2 else (lambda h: jnp.einsum("n...i,nij->n...j", h, w))

        return [layer(w) for w in weights]
