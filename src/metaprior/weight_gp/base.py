"""The interface of a conditional: how the weights follow from the unit latents and the GP.

Given z and q(u), the weights are jointly Gaussian. Each conditional in this folder is one way to draw them, or to draw
the pre-activations they produce. A conditional states how many standard normals it needs. Given these it returns a
`ConditionalDraw`, which maps activations through the layers and can also return explicit weights.
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

#: The default scales of a layer: of its weights, and of its biases.
UNIT_SCALE = np.ones(2, np.float32)


#: Inducing values at free codes, at anchored codes, and at the codes of one draw.
AnySparseGP = SparseGP | Anchored | Placed


class LayerLatents(NamedTuple):
    """The latents of the input and output units of one layer of weights; the bias unit is the last input unit.

    A weight is `scale[0]` times the value of the GP, and a bias is `scale[1]` times the value of the GP.
    """

    z_in: Float[Array, "I Dz"]
    z_out: Float[Array, "J Dz"]
    weight_layer: WeightLayer
    scale: Float[Leaf, "2"] = UNIT_SCALE


def input_scales(scale: Float[Leaf, "2"], num_inputs: int) -> Float[Array, " I"]:
    """Return the scale of every input unit; the bias unit is last."""
    return jnp.concatenate([jnp.broadcast_to(scale[0], num_inputs - 1), jnp.asarray(scale[1])[None]])


def stacked(parts: Sequence[Array], last: Leaf) -> Array:
    """Join the latents of all layers and the inducing block, so that a kernel is evaluated once for all of them."""
    return jnp.concatenate([*parts, jnp.asarray(last, parts[0].dtype)])


def unstacked(rows: Array, parts: Sequence[Array]) -> list[Array]:
    """Split rows of the joined parts back into the rows of each part."""
    return jnp.split(rows, np.cumsum([p.shape[0] for p in parts])[:-1].tolist())


class GPContext(NamedTuple):
    """Everything that defines one GP: q(u), the input kernel (None if global), L^-1, and sigma_w."""

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
    """One draw of the weights of all layers that share a GP."""

    @abc.abstractmethod
    def at(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return the layers at the given inputs; `rows` holds the normals of each row."""

    @abc.abstractmethod
    def weights(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the explicit weights of every layer: [I, J], or [B, I, J] if they depend on the input."""


class Conditional(eqx.Module):
    """A way to draw weights given unit latents and q(u)."""

    @abc.abstractmethod
    def sizes(
        self, sparse_gp: AnySparseGP, input_kernel: Kernel | None, weight_layers: Sequence[WeightLayer]
    ) -> NormalCounts:
        """Return how many normals a draw needs."""

    @abc.abstractmethod
    def draw(
        self, prior: GPContext, layer_latents: Sequence[LayerLatents], normals: StandardNormals
    ) -> ConditionalDraw:
        """Return one draw for the layers with these latents."""

    @property
    def couples_rows(self) -> bool:
        """Whether the rows of one call are drawn jointly in a local model."""
        return False


def per_row(context: Float[Array, "*b W"], h: Array) -> Array:
    """Reshape the context of the rows, [B, W], so that it multiplies arrays of shape [B, positions..., W]."""
    if context.ndim == 1:
        return context
    return context.reshape(context.shape[0], *([1] * (h.ndim - 2)), context.shape[1])
