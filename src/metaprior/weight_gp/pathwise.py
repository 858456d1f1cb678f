"""`pathwise`: coherent draws at linear cost, by random features and Matheron's rule.

f(c) = sum_f c_f psi_f(c) / sqrt(F) + K_cu K_uu^-1 (u - f_prior(C_u)). A feature of a product kernel is the product of
the features of its factors, so a layer is `((h @ left) * context) @ right.T`, where left and right join the kernel
columns (M), the features (F) and the features of the weight noise. Cost B (I + J)(M + F), without a weight matrix and
without an array of size B x M x M. In a global model the context is the same for every row, so the weights of a small
layer can be formed once instead, at cost I J (M + F) + B I J. The way with fewer operations is used.
The draw is a function of x. Every draw has fresh frequencies, so its first two moments are exact for any F.

The weight noise is white over units: delta_ik = E[cos(w (i - k))] for whole numbers i, k and w uniform on the circle.
So it has random features too, which take two random numbers per side each, instead of one per weight.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.networks import Layer, WeightLayer
from metaprior.numerics import cosine
from metaprior.random import NormalCounts, StandardNormals, take
from metaprior.types import Leaf
from metaprior.weight_gp.base import (
    AnySparseGP,
    Conditional,
    ConditionalDraw,
    GPContext,
    LayerLatents,
    input_scales,
    per_row,
    unstacked,
)
from metaprior.weight_gp.weight_noise import WeightNoise


class Pathwise(Conditional):
    """Draws weights as functions, with `num_features` for the GP and `num_noise_features` for the weight noise."""

    num_features: int = eqx.field(static=True, default=64)
    num_noise_features: int = eqx.field(static=True, default=16)

    def _spectral_shapes(self, sparse_gp: AnySparseGP, input_kernel: Kernel | None) -> list[tuple[int, int]]:
        rows = [
            sparse_gp.kernel_in.num_normals(sparse_gp.latent_dim),
            sparse_gp.kernel_out.num_normals(sparse_gp.latent_dim),
        ]
        rows += [] if input_kernel is None else [input_kernel.num_normals(sparse_gp.input_codes.shape[1])]
        return [(r, self.num_features) for r in rows] + [(4, self.num_noise_features)]

    def sizes(
        self, sparse_gp: AnySparseGP, input_kernel: Kernel | None, weight_layers: Sequence[WeightLayer]
    ) -> NormalCounts:
        """Return the normals of v and of the coefficients, and those that choose frequencies and phases."""
        shapes = self._spectral_shapes(sparse_gp, input_kernel)
        weights = sparse_gp.n_inducing + self.num_features + self.num_noise_features
        return NormalCounts(weights=weights, spectral=sum(a * b for a, b in shapes))

    def draw(self, prior: GPContext, layer_latents: Sequence[LayerLatents], normals: StandardNormals) -> "PathwiseDraw":
        """Draw a function of the prior and update it to pass through u at the inducing codes."""
        sparse_gp = prior.sparse_gp
        spectral = take(normals.spectral, *self._spectral_shapes(sparse_gp, prior.input_kernel))
        widths = (sparse_gp.n_inducing, self.num_features, self.num_noise_features)
        for_v, c, c_noise = take(normals.weights, *[(w,) for w in widths])
        c = c / np.sqrt(self.num_features).astype(c.dtype)
        c_noise = c_noise / np.sqrt(self.num_noise_features).astype(c.dtype)
        left, features_in = _columns(
            sparse_gp.kernel_in, [e.z_in for e in layer_latents], sparse_gp.code_in, spectral[0]
        )
        right, features_out = _columns(
            sparse_gp.kernel_out, [e.z_out for e in layer_latents], sparse_gp.code_out, spectral[1]
        )
        features = features_in * features_out
        if prior.input_kernel is not None:
            features = features * prior.input_kernel.features(sparse_gp.input_codes, spectral[2])
        white_in, white_out = _white(layer_latents, spectral[-1], prior.weight_noise)
        return PathwiseDraw(
            prior,
            jnp.concatenate([prior.solve(sparse_gp.draw(for_v), features @ c), c, c_noise]),
            None if prior.input_kernel is None else spectral[2],
            [jnp.concatenate([a, b], axis=1) for a, b in zip(left, white_in, strict=True)],
            [jnp.concatenate([a, b], axis=1) for a, b in zip(right, white_out, strict=True)],
            [e.scale for e in layer_latents],
        )


class PathwiseDraw(ConditionalDraw):
    """A drawn function of the input: its coefficients, and two blocks of columns for every layer."""

    prior: GPContext
    coefficients: Float[Array, " W"]
    spectral_aux: Float[Array, "R F"] | None
    left: list[Array]
    right: list[Array]
    scales: list[Leaf]

    def context(self, eps: Float[Array, "B E"]) -> Array:
        """Return the coefficients at every input: [B, W], or [W] for a global model."""
        kernel = self.prior.input_kernel
        if kernel is None or self.spectral_aux is None:
            return self.coefficients
        known = [self.prior.cross_aux(eps), kernel.features(eps, self.spectral_aux)]
        white = self.coefficients.shape[0] - sum(k.shape[1] for k in known)
        ones = jnp.ones((eps.shape[0], white), eps.dtype)
        return jnp.concatenate([*known, ones], axis=1) * self.coefficients

    def at(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return h -> ((h left) * context) right'. The scales multiply the inner array of B (M + F) numbers."""
        context = self.context(eps)

        def layer(left: Array, right: Array, scale: Leaf) -> Layer:
            def push(h: Array) -> Array:
                if context.ndim == 1 and forms_weights(h.size // h.shape[-1], left.shape[0], *right.shape):
                    return h @ _formed(left, context, right, scale)
                inner = (h[..., :-1] @ left[:-1]) * scale[0] + h[..., -1:] * (left[-1] * scale[1])
                return (inner * per_row(context, h)) @ right.T

            return push

        return [layer(*parts) for parts in zip(self.left, self.right, self.scales, strict=True)]

    def weights(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the weight matrices, formed explicitly."""
        context = self.context(eps)
        return [
            _formed(left, context, right, scale)
            for left, right, scale in zip(self.left, self.right, self.scales, strict=True)
        ]


def forms_weights(num_rows: int, num_in: int, num_out: int, num_columns: int) -> bool:
    """Whether forming the weights once for all rows, I J W + B I J, costs less than B (I + J) W."""
    return num_in * num_out * (num_columns + num_rows) < num_rows * (num_in + num_out) * num_columns


def _formed(left: Float[Array, "I W"], context: Float[Array, "*b W"], right: Float[Array, "J W"], scale: Leaf) -> Array:
    scaled = left * input_scales(scale, left.shape[0])[:, None]
    return (scaled * context[..., None, :]) @ right.T


def _columns(kernel: Kernel, parts: Sequence[Array], codes: Leaf, normals: Array) -> tuple[list[Array], Array]:
    """Return the kernel columns and features of every layer, side by side, and the features at the inducing codes."""
    everything = jnp.concatenate(parts)
    # The inducing codes are kept separate: joined to the units, their derivative would be cut and padded by element.
    columns = jnp.concatenate([kernel(everything, codes), kernel.features(everything, normals)], axis=1)
    return unstacked(columns, parts), kernel.features(jnp.asarray(codes, everything.dtype), normals)


def _white(
    layer_latents: Sequence[LayerLatents], normals: Float[Array, "4 F"], weight_noise: WeightNoise
) -> tuple[list[Array], list[Array]]:
    """Return the features of the white kernel over unit numbers, times the std of the units of every layer.

    There is a single cosine for all layers, because each one costs compile time.
    """
    turns_in, phase_in, turns_out, phase_out = normals  # modulo a full turn, 2 pi normal is uniform to 3e-9
    angles = [_numbers(e.weight_layer.inputs, normals) * turns_in + phase_in for e in layer_latents]
    angles += [_numbers(e.weight_layer.outputs, normals) * turns_out + phase_out for e in layer_latents]
    waves = np.sqrt(2).astype(normals.dtype) * cosine(2 * np.pi * jnp.concatenate(angles))
    white = unstacked(waves, angles)
    white_in = [w * weight_noise.std_in(e.z_in)[:, None] for w, e in zip(white, layer_latents, strict=False)]
    white_out = [
        w * weight_noise.std_out(e.z_out)[:, None]
        for w, e in zip(white[len(layer_latents) :], layer_latents, strict=True)
    ]
    return white_in, white_out


def _numbers(units: range, like: Array) -> Array:
    return jnp.asarray(np.arange(units.start, units.stop), like.dtype)[:, None]
