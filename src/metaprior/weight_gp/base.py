"""What a conditional is: how the weights follow from the unit latents and the GP.

Given z and q(u), the weights are jointly Gaussian; each file beside this one is one way to draw them (or the
pre-activations they make). A conditional says how many normals it needs, and given them returns a `ConditionalDraw`
that pushes activations and hands out explicit weights.
"""

import abc
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.networks import Layer, WeightLayer
from metaprior.random import NormalCounts, StandardNormals
from metaprior.types import Leaf
from metaprior.weight_gp.anchored import Anchored, Placed
from metaprior.weight_gp.sparse_gp import SparseGP
from metaprior.weight_gp.weight_noise import WeightNoise

#: The scale of a layer's weights and that of its biases.
UNIT_SCALE = np.ones(2, np.float32)


#: Inducing values at free codes, at anchored ones, and at those of a draw.
AnySparseGP = SparseGP | Anchored | Placed


class LayerLatents(NamedTuple):
    """The latents of the input and output units of one layer of weights; the bias unit stands last among the inputs.

    The layer's weights are `scale[0]`, its biases `scale[1]` times what the GP says.
    """

    z_in: Float[Array, "I Dz"]
    z_out: Float[Array, "J Dz"]
    weight_layer: WeightLayer
    scale: Float[Leaf, "2"] = UNIT_SCALE


def input_scales(scale: Float[Leaf, "2"], num_inputs: int) -> Float[Array, " I"]:
    """Return every input unit's scale."""
    return jnp.concatenate([jnp.broadcast_to(scale[0], num_inputs - 1), jnp.asarray(scale[1])[None]])


def stacked(parts: Sequence[Array], last: Leaf) -> Array:
    """Join every layer's latents and the inducing block, so that a kernel is evaluated once for all of them."""
    return jnp.concatenate([*parts, jnp.asarray(last, parts[0].dtype)])


def unstacked(rows: Array, parts: Sequence[Array]) -> list[Array]:
    """Cut rows that belong to joined parts into every layer's own."""
    return jnp.split(rows, np.cumsum([p.shape[0] for p in parts])[:-1].tolist())


class GPContext(NamedTuple):
    """One GP with all that defines its GP: q(u), the input kernel (None: global), L^-1, and sigma_w."""

    sparse_gp: SparseGP | Placed
    input_kernel: Kernel | None
    inverse_root: Float[Array, "M M"]
    weight_noise: WeightNoise

    def cross_aux(self, eps: Float[Array, "B E"]) -> Float[Array, "B M"]:
        """Return a[n, m] = k_aux(eps_n, U_aux,m)."""
        assert self.input_kernel is not None
        return self.input_kernel(eps, self.sparse_gp.input_codes)

    def solve(self, v: Float[Leaf, " M"], f_u: Float[Array, " M"] | None = None) -> Float[Array, " M"]:
        """Return alpha = K_uu^-1 (u - f_u) = L^-T (v - L^-1 f_u)."""
        return self.inverse_root.T @ (v if f_u is None else v - self.inverse_root @ f_u)


class ConditionalDraw(eqx.Module):
    """One draw of the weights that a GP governs."""

    @abc.abstractmethod
    def at(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return the layers at the given inputs; `rows` are the rows' own normals."""

    @abc.abstractmethod
    def weights(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return explicit weights of every layer: [I, J], or [B, I, J] where they depend on the input."""


class Conditional(eqx.Module):
    """A way to draw weights given unit latents and q(u)."""

    @abc.abstractmethod
    def sizes(
        self, sparse_gp: AnySparseGP, input_kernel: Kernel | None, weight_layers: Sequence[WeightLayer]
    ) -> NormalCounts:
        """Return how many normals a draw takes."""

    @abc.abstractmethod
    def draw(
        self, prior: GPContext, layer_latents: Sequence[LayerLatents], normals: StandardNormals
    ) -> ConditionalDraw:
        """Return one draw for the layers with these ends."""

    @property
    def couples_rows(self) -> bool:
        """Whether, in a local model, the rows of one call are drawn jointly."""
        return False


def per_row(context: Float[Array, "*b W"], h: Array) -> Array:
    """Give a row's context [B, W] the shape to multiply h-like arrays [B, positions..., W]."""
    if context.ndim == 1:
        return context
    return context.reshape(context.shape[0], *([1] * (h.ndim - 2)), context.shape[1])
