"""`full`: the exact joint Gaussian of all weights, by Matheron's rule on a Kronecker grid.

The codes of the layers lie on a grid Z_in x Z_out, and k_w is a product. Let [[L, 0], [R, T]] be the factor of the
kernel matrix of (Z, U) on each side. A prior draw on the grid is f_w = L_in E L_out' for standard normals E. The values
at the inducing codes are f_u = (R_in E R_out')_mm plus a part that does not depend on the grid, with the covariance
(R_in R_in') o (T_out T_out') + (T_in T_in') o (R_out R_out') + (T_in T_in') o (T_out T_out'), M normals of their own.
Then w = f_w + K_wu K_uu^-1 (u - f_u) + sigma_w eps has exactly the mean and covariance of q(w | z). Cost (H + M)^3
instead of W^3.

An input kernel adds a third factor, over (U_aux, eps): one grid of normals for every U_aux and one for every row. The
rows of one call are drawn jointly, so the draw is coherent over x. The factor is lower triangular with U_aux first, so
every row has the same marginal as by itself, and what belongs to U_aux is the same for all rows.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.networks import Layer, WeightLayer
from metaprior.numerics import jittered_cholesky, jittered_inverse_root
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
        sides = sum(len(w.inputs) for w in weight_layers), sum(len(w.outputs) for w in weight_layers)
        if max(sides) + sparse_gp.n_inducing > MOST_ROWS:
            raise ValueError(
                f"conditional='full': expected at most {MOST_ROWS} units and inducing codes per side of the layers, "
                f"because every draw factors their covariance; got {max(sides) + sparse_gp.n_inducing}. Use "
                "conditional='pathwise' instead."
            )
        return sides

    def _shapes(
        self, sparse_gp: AnySparseGP, input_kernel: Kernel | None, weight_layers: Sequence[WeightLayer]
    ) -> list[tuple[int, ...]]:
        own = sparse_gp.n_inducing
        depth = 1 if input_kernel is None else own
        white: list[tuple[int, ...]] = [(len(w.inputs), len(w.outputs)) for w in weight_layers]
        return [(own,), (own,), (depth, *self._grid(sparse_gp, weight_layers)), *white]

    def sizes(
        self, sparse_gp: AnySparseGP, input_kernel: Kernel | None, weight_layers: Sequence[WeightLayer]
    ) -> NormalCounts:
        """Return the normals of v, f_u, the grid (at every U_aux) and sigma_w; a row of a local model adds a grid."""
        shapes = self._shapes(sparse_gp, input_kernel, weight_layers)
        total = int(sum(np.prod(s) for s in shapes))
        return NormalCounts(weights=total, per_row=0 if input_kernel is None else int(np.prod(shapes[2][1:])))

    def draw(self, prior: GPContext, layer_latents: Sequence[LayerLatents], normals: StandardNormals) -> "FullDraw":
        """Return a draw with both sides of the grid factored."""
        sparse_gp = prior.sparse_gp
        shapes = self._shapes(sparse_gp, prior.input_kernel, [e.weight_layer for e in layer_latents])
        for_v, for_f_u, grid, *white = take(normals.weights, *shapes)
        side_in = stacked([e.z_in for e in layer_latents], sparse_gp.code_in)
        side_out = stacked([e.z_out for e in layer_latents], sparse_gp.code_out)
        jitter = jnp.asarray(max(self.jitter, 4 * float(jnp.finfo(grid.dtype).eps)), grid.dtype)
        return FullDraw(
            prior,
            Side(jittered_cholesky(sparse_gp.kernel_in(side_in, side_in), jitter)[0], sparse_gp.n_inducing),
            Side(jittered_cholesky(sparse_gp.kernel_out(side_out, side_out), jitter)[0], sparse_gp.n_inducing),
            sparse_gp.draw(for_v),
            for_f_u,
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


class Side(eqx.Module):
    """The factor [[L, 0], [R, T]] of the kernel matrix of one side of the grid: its units first, then U."""

    root: Float[Array, "a a"]
    n_inducing: int = eqx.field(static=True)

    @property
    def of_units(self) -> Float[Array, "I I"]:
        """L."""
        return self.root[: -self.n_inducing, : -self.n_inducing]

    @property
    def of_codes(self) -> Float[Array, "M I"]:
        """R: what the values at U have in common with the units."""
        return self.root[-self.n_inducing :, : -self.n_inducing]

    @property
    def covariances(self) -> tuple[Float[Array, "M M"], Float[Array, "M M"]]:
        """R R' and T T'."""
        rest = self.root[-self.n_inducing :, -self.n_inducing :]
        return self.of_codes @ self.of_codes.T, rest @ rest.T


class FullDraw(ConditionalDraw):
    """The factors and normals of the grid, from which the weights at given inputs follow."""

    prior: GPContext
    side_in: Side
    side_out: Side
    v: Float[Array, " M"]
    for_f_u: Float[Array, " M"]
    grid: Float[Array, "K I J"]
    white: list[Array]
    e_in: list[Array]
    e_out: list[Array]
    scales: list[Array]
    jitter: Float[Array, ""]

    def _blocks(self, f: Float[Array, "B I J"]) -> list[Array]:
        out, i, j = [], 0, 0
        for e_in, e_out in zip(self.e_in, self.e_out, strict=True):
            out.append(f[:, i : i + e_in.shape[0], j : j + e_out.shape[0]])
            i, j = i + e_in.shape[0], j + e_out.shape[0]
        return out

    def _on_grid(self, normals: Float[Array, "K I J"]) -> Float[Array, "K I J"]:
        """Return L_in E L_out' for every grid of normals."""
        return jnp.einsum("ac,kcd,bd->kab", self.side_in.of_units, normals, self.side_out.of_units)

    def _at_codes(self, root_aux: Float[Array, "M K"]) -> Float[Array, " M"]:
        """Return f_u for the factor of U_aux, a column of ones in a global model."""
        common = jnp.einsum("mk,kij,mi,mj->m", root_aux, self.grid, self.side_in.of_codes, self.side_out.of_codes)
        (r_in, t_in), (r_out, t_out) = self.side_in.covariances, self.side_out.covariances
        rest = (root_aux @ root_aux.T) * (r_in * t_out + t_in * r_out + t_in * t_out)
        return common + jittered_cholesky(rest, jnp.asarray(jnp.finfo(rest.dtype).eps, rest.dtype))[0] @ self.for_f_u

    def _drawn(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> tuple[Array, Array, Array]:
        """Return f_w at every row, f_u, and k_aux(eps, U_aux); a global model has one row, and ones."""
        kernel, num_codes = self.prior.input_kernel, self.prior.sparse_gp.n_inducing
        f = self._on_grid(self.grid)
        if kernel is None:
            ones = jnp.ones((num_codes, 1), f.dtype)
            return f, self._at_codes(ones), ones.T
        root, below, own = self._aux_factor(kernel, eps)
        of_rows = self._on_grid(rows.reshape(-1, *self.grid.shape[1:]))
        f_w = jnp.einsum("nk,kij->nij", below, f) + jnp.einsum("nr,rij->nij", own, of_rows)
        return f_w, self._at_codes(root), self.prior.cross_aux(eps)

    def _aux_factor(self, kernel: Kernel, eps: Float[Array, "B E"]) -> tuple[Array, Array, Array]:
        """Return the blocks of the factor [[root, 0], [below, own]] of the third side, over U_aux and the rows.

        A row by itself is drawn with many others, for all of which `root` is the same: it is factored apart. Several
        rows are factored together with U_aux, which float32 needs if they lie close to each other.
        """
        codes = jnp.asarray(self.prior.sparse_gp.input_codes, eps.dtype)
        if len(eps) > 1:
            points = jnp.concatenate([codes, eps])
            factor, num = jittered_cholesky(kernel(points, points), self.jitter)[0], len(codes)
            return factor[:num, :num], factor[num:, :num], factor[num:, num:]
        gram, own = kernel(codes, codes), kernel(eps, eps)
        below = self.prior.cross_aux(eps) @ jittered_inverse_root(gram, self.jitter)[0].T
        least = jnp.finfo(own.dtype).tiny  # a kernel may be 0 at a row
        rest = jnp.maximum(own - below @ below.T, 0) + self.jitter * own + least
        return jittered_cholesky(gram, self.jitter)[0], below, jnp.sqrt(rest)

    def weights(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the drawn weights: [I, J], or [B, I, J] drawn jointly over the rows in a local model."""
        f_w, f_u, cross = self._drawn(eps, rows)
        alpha = self.prior.solve(self.v, f_u)
        drawn = [
            scale * (prior + jnp.einsum("im,nm,jm->nij", e_in, cross * alpha, e_out) + white)
            for prior, e_in, e_out, white, scale in zip(
                self._blocks(f_w), self.e_in, self.e_out, self.white, self.scales, strict=True
            )
        ]
        return [w[0] for w in drawn] if self.prior.input_kernel is None else drawn

    def at(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return h -> h w; in a local model each row has its own weights."""
        weights = self.weights(eps, rows)

        def layer(w: Array) -> Layer:
            return (lambda h: h @ w) if w.ndim == 2 else (lambda h: jnp.einsum("n...i,nij->n...j", h, w))

        return [layer(w) for w in weights]
