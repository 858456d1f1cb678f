"""What `diag` and `fitc` share: the weights are independent given the draw, so the pre-activations are Gaussian.

The pre-activations are drawn directly (local reparameterisation):

mean[n,j] = sum_m (h E_in)[n,m] a[n,m] alpha[m] E_out[j,m]                          cost B (I + J) M
var[n,j]  = sum_i h[n,i]^2 (k(c_ij, c_ij) + sigma_w^2) - explained[n,j]
explained[n,j] = sum_mm' E_out[j,m] E_out[j,m'] P[m,m'] a[n,m] a[n,m'] sum_i h[n,i]^2 E_in[i,m] E_in[i,m']

The explained part can be summed in two orders with the same result. The one with fewer operations is used:
weight-first       every weight's share once, then h^2 times it:  I J M^2 + B I J (global), B I J M^2 (local)
activation-first   the inner sum per row, then per output:         B (I + J) M^2

The sums over m, m' run over pairs m <= m' only, which halves the work. But the pairs have to be gathered: that takes
(I + J) M^2 / 2 slow memory moves, and as many again in the gradient. For a small layer the columns c = E_in E_out of
its weights are formed instead, and c' P c is summed over all m, m'.
"""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.networks import Layer, WeightLayer
from metaprior.types import Leaf
from metaprior.weight_gp.base import ConditionalDraw, GPContext, LayerLatents, input_scales

#: The cost of gathering one pair, in multiplications (measured in float32, including the gradient).
GATHER = 25


def operation_counts(num_rows: int, num_in: int, num_out: int, n_inducing: int, *, local: bool) -> tuple[int, int]:
    """Return the number of operations of both orders: (weight-first, activation-first)."""
    weights, square = num_in * num_out, n_inducing**2
    weight_first = num_rows * weights * square if local else weights * square + num_rows * weights
    return weight_first, num_rows * (num_in + num_out) * square


def _pairs(columns: Float[Array, "H M"]) -> Float[Array, "H Q"]:
    """Return the products of every pair of columns m <= m'."""
    first, second = np.triu_indices(columns.shape[1])
    return columns[:, first] * columns[:, second]


def _pair_weights(precision: Float[Array, "M M"]) -> Float[Array, " Q"]:
    """Return the entries of P for the pairs m <= m', with the off-diagonal entries doubled."""
    first, second = np.triu_indices(precision.shape[0])
    twice = np.where(first == second, 1, 2).astype(precision.dtype)
    return precision[first, second] * twice


def is_small(num_in: int, num_out: int) -> bool:
    """Whether pairs save less (I J M^2 / 2) than it costs to gather (I + J) M^2 / 2 of them."""
    return num_in * num_out < GATHER * (num_in + num_out)


def explained_activation_first(
    h2: Float[Array, "B I"], e_in: Array, e_out: Array, a: Float[Array, "B M"] | None, precision: Array
) -> Float[Array, "B J"]:
    """Return the explained part, summed over the input units first. Cost B (I + J) M^2."""
    inner = (h2 @ _pairs(e_in)) * _pair_weights(precision)
    if a is not None:
        inner = inner * _pairs(a)
    return inner @ _pairs(e_out).T


def explained_weight_first(
    h2: Float[Array, "B I"], e_in: Array, e_out: Array, a: Float[Array, "B M"] | None, precision: Array
) -> Float[Array, "B J"]:
    """Return the explained part, from every weight's share. Cost I J M^2 + B I J, or B I J M^2 in a local model."""
    if a is None and is_small(e_in.shape[0], e_out.shape[0]):
        columns = (e_in[:, None] * e_out).reshape(-1, e_in.shape[1])
        return h2 @ jnp.sum((columns @ precision) * columns, axis=1).reshape(e_in.shape[0], -1)
    pairs_in, pairs_out, weights = _pairs(e_in), _pairs(e_out), _pair_weights(precision)
    if a is None:
        return h2 @ ((pairs_in * weights) @ pairs_out.T)

    def row(h2_row: Array, a_row: Array) -> Array:
        return h2_row @ ((pairs_in * (weights * _pairs(a_row[None])[0])) @ pairs_out.T)

    return jax.vmap(row)(h2, a)


def cheaper_order(num_rows: int, e_in: Leaf, e_out: Leaf, *, local: bool) -> Callable[..., Array]:
    """Return the order of summation that needs fewer operations for these shapes."""
    counts = operation_counts(num_rows, e_in.shape[0], e_out.shape[0], e_in.shape[1], local=local)
    return explained_weight_first if counts[0] < counts[1] else explained_activation_first


class IndependentDraw(ConditionalDraw):
    """Independent weights with given means and variances; each row draws its own pre-activations."""

    prior: GPContext
    alpha: Float[Array, " M"]
    precision: Float[Array, "M M"]
    z_in: list[Array]
    z_out: list[Array]
    scales: list[Leaf]
    weight_layers: tuple[WeightLayer, ...] = eqx.field(static=True)

    def __init__(self, prior: GPContext, alpha: Array, precision: Array, layer_latents: Sequence[LayerLatents]) -> None:
        """Store the latents separately from the layers of weights, which are static."""
        self.prior, self.alpha, self.precision = prior, alpha, precision
        self.z_in, self.z_out = [e.z_in for e in layer_latents], [e.z_out for e in layer_latents]
        self.scales, self.weight_layers = [e.scale for e in layer_latents], tuple(e.weight_layer for e in layer_latents)

    def _blocks(self, layer: int) -> tuple[Array, Array, Array, Array]:
        z_in, z_out, sparse_gp = self.z_in[layer], self.z_out[layer], self.prior.sparse_gp
        return (
            z_in,
            z_out,
            sparse_gp.kernel_in(z_in, sparse_gp.code_in),
            sparse_gp.kernel_out(z_out, sparse_gp.code_out),
        )

    def moments(self, layer: int, h: Float[Array, "B I"], eps: Float[Array, "B E"]) -> tuple[Array, Array]:
        """Return the mean and variance of the pre-activations."""
        z_in, z_out, e_in, e_out = self._blocks(layer)
        h = h * input_scales(self.scales[layer], h.shape[-1])
        sparse_gp, kernel = self.prior.sparse_gp, self.prior.input_kernel
        a = None if kernel is None else self.prior.cross_aux(eps)
        mean = ((h @ e_in) * (self.alpha if a is None else a * self.alpha)) @ e_out.T
        h2 = h * h
        level = jnp.ones(h.shape[0], h.dtype) if kernel is None else kernel.diagonal(eps)
        total = jnp.outer(level * (h2 @ sparse_gp.kernel_in.diagonal(z_in)), sparse_gp.kernel_out.diagonal(z_out))
        noise = jnp.outer(h2 @ self.prior.weight_noise.std_in(z_in) ** 2, self.prior.weight_noise.std_out(z_out) ** 2)
        explained = cheaper_order(h.shape[0], e_in, e_out, local=a is not None)(h2, e_in, e_out, a, self.precision)
        return mean, jnp.maximum(total - explained, 0) + noise

    def at(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return h -> mean + std * normals of the row."""
        sizes = [w.positions * len(w.outputs) for w in self.weight_layers]
        normals = jnp.split(rows, np.cumsum(sizes)[:-1].tolist(), axis=1)

        def layer(index: int) -> Layer:
            def push(h: Array) -> Array:
                flat = h.reshape(-1, h.shape[-1])
                wide = jnp.repeat(eps, flat.shape[0] // eps.shape[0], axis=0)
                mean, variance = self.moments(index, flat, wide)
                draw = mean + _root(variance) * normals[index].reshape(mean.shape)
                return draw.reshape(*h.shape[:-1], mean.shape[-1])

            return push

        return [layer(index) for index in range(len(self.weight_layers))]

    def weight_moments(self, layer: int, eps: Float[Array, "B E"]) -> tuple[Array, Array]:
        """Return the mean and variance of every weight: [I, J], or [B, I, J] in a local model."""
        z_in, z_out, e_in, e_out = self._blocks(layer)
        kernel, sparse_gp = self.prior.input_kernel, self.prior.sparse_gp
        a = jnp.ones((1, self.alpha.shape[0])) if kernel is None else self.prior.cross_aux(eps)
        level = jnp.ones(1) if kernel is None else kernel.diagonal(eps)
        columns = jnp.einsum("im,bm,jm->bijm", e_in, a, e_out)
        prior = jnp.einsum(
            "i,b,j->bij", sparse_gp.kernel_in.diagonal(z_in), level, sparse_gp.kernel_out.diagonal(z_out)
        )
        noise = jnp.outer(self.prior.weight_noise.std_in(z_in), self.prior.weight_noise.std_out(z_out)) ** 2
        explained = jnp.einsum("bijm,mk,bijk->bij", columns, self.precision, columns)
        scale = input_scales(self.scales[layer], z_in.shape[0])[:, None]
        mean, variance = scale * (columns @ self.alpha), scale**2 * (jnp.maximum(prior - explained, 0) + noise)
        return (mean[0], variance[0]) if kernel is None else (mean, variance)

    def weights(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the mean weights given the draw; the rest is noise that each row draws for itself."""
        return [self.weight_moments(index, eps)[0] for index in range(len(self.weight_layers))]


def row_normals(weight_layers: Sequence[WeightLayer]) -> int:
    """Return how many normals a row needs: one per output unit and position."""
    return sum(w.positions * len(w.outputs) for w in weight_layers)


def _root(variance: Array) -> Array:
    # The derivative of sqrt is infinite at 0.
    return jnp.sqrt(jnp.maximum(variance, jnp.finfo(variance.dtype).tiny * 1e6))
