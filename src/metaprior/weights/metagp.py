"""MetaGP and MetaGP-local: the weights of a network are values of a Gaussian process over their codes.

w = s (f(code) + sigma_w n), code = [z_in, z_out] or, if the layer is local, [z_in, z_out, eps(x)]. Every layer has one
scale s for its weights, 1/sqrt(fan-in) at the start, and one for its biases. So the data can decide, for instance, that
only the input kernel carries the signal and not the input itself.

All layers share one GP (`weight_gp="shared"`), or each has its own (`"per_layer"`). Local and global layers never share
a GP, because their codes live in different spaces. There is one input kernel for the whole network: separate kernels
drift apart, and extrapolation becomes worse.

If the output layer is integrated out (`output`), its weights are not drawn. A draw gives their Gaussian prior instead,
conditioned on the values of the same GP that were drawn below.
"""

from collections.abc import Sequence
from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.inputs import InputMap
from metaprior.kernels import Kernel
from metaprior.latents import UnitLatents
from metaprior.networks import Layer, WeightLayer
from metaprior.numerics import jittered_cholesky, jittered_inverse_root
from metaprior.random import NormalCounts, StandardNormals
from metaprior.types import Leaf
from metaprior.weight_gp import (
    Anchored,
    Conditional,
    ConditionalDraw,
    GPContext,
    KnownValues,
    LayerLatents,
    OutputPrior,
    Posterior,
    SparseGP,
    WeightNoise,
)
from metaprior.weight_gp.base import input_scales
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel

T = TypeVar("T")

#: The lower end of the log-uniform prior of the scale of a local output layer's weights. The bias alone is the exact GP
#: of the input kernel. The hidden units contribute only if the evidence gains more than the few nats that they cost.
#: Without this prior a trend that gains a tenth of a nat is included, and extrapolation becomes worse.
LEAST_SCALE = 1e-3


class OutputWeights(eqx.Module):
    """The prior of an integrated output layer; `group` is the group of layers below with the same GP, or None."""

    kernel_in: Kernel | None
    kernel_out: Kernel | None
    weight_noise: WeightNoise
    layer: int = eqx.field(static=True)
    group: int | None = eqx.field(static=True)
    local: bool = eqx.field(static=True)
    local_noise: bool = eqx.field(static=True, default=False)


class MetaGP(WeightModel):
    """A Gaussian-process prior over the weights of a network."""

    latents: UnitLatents
    sparse_gps: tuple[SparseGP | Anchored, ...]
    input_kernel: Kernel | None
    input_map: InputMap
    log_scale: Float[Leaf, "L 2"]
    weight_noise: WeightNoise
    weight_layers: tuple[WeightLayer, ...] = eqx.field(static=True)
    groups: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    local: tuple[bool, ...] = eqx.field(static=True)
    conditional: Conditional
    start_jitter: float = eqx.field(static=True, default=1e-4)
    output: OutputWeights | None = None

    def kernel_of(self, group: int) -> Kernel | None:
        """Return the input kernel of a group of layers, or None if the group is global."""
        return self.input_kernel if self.local[group] else None

    def group_layers(self, group: int) -> list[WeightLayer]:
        """Return the layers of weights that share the GP of a group."""
        return [self.weight_layers[layer] for layer in self.groups[group]]

    def group_sizes(self, group: int) -> NormalCounts:
        """Return how many normals a draw of one GP needs."""
        sparse_gp = self.sparse_gps[group]
        if isinstance(sparse_gp, Anchored) and sparse_gp.whole:
            return NormalCounts(weights=sparse_gp.n_inducing)
        return self.conditional.sizes(sparse_gp, self.kernel_of(group), self.group_layers(group))

    def sizes(self) -> NormalCounts:
        """Return the normals of the latents, of V and of every GP."""
        groups = [self.group_sizes(g) for g in range(len(self.sparse_gps))]
        return NormalCounts(
            latents=self.latents.num_normals,
            weights=self.input_map.num_normals + sum(g.weights for g in groups),
            spectral=sum(g.spectral for g in groups),
            per_row=sum(g.per_row for g in groups),
        )

    @property
    def _jitter(self) -> Float[Array, ""]:
        return jnp.asarray(self.start_jitter, self.latents.mean.dtype)

    def prepared(self) -> "PreparedMetaGP":
        """Factor every K_uu that does not depend on a draw. Cost M^3 per GP."""
        roots = [self._prepared_root(g, sparse_gp) for g, sparse_gp in enumerate(self.sparse_gps)]
        used = jnp.max(jnp.stack([jnp.zeros((), self.latents.mean.dtype), *[used for _, used in roots]]))
        return PreparedMetaGP(self, [root for root, _ in roots], used)

    def _prepared_root(self, g: int, sparse_gp: SparseGP | Anchored) -> tuple[Array | Posterior, Array]:
        """Return L^-1 of free codes, q(u) of anchored ones, and the jitter that a factor took."""
        if isinstance(sparse_gp, SparseGP):
            return sparse_gp.inverse_root(self.kernel_of(g), self._jitter)
        if sparse_gp.whole:
            return sparse_gp.posterior(None), jnp.zeros((), self.latents.mean.dtype)
        gram = sparse_gp.gram(jnp.asarray(self.latents.mean), self.kernel_of(g), self.weight_noise)
        root, used = jittered_cholesky(gram, self._jitter)
        return sparse_gp.posterior(root), used

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KL of z, of v at free codes and of V, and the cost of points, if the model has them."""
        free = [m.kl() for m in self.sparse_gps if isinstance(m, SparseGP)]
        parts = {"kl_z": self.latents.kl()} | ({"kl_u": sum(free, jnp.zeros(()))} if free else {})
        return parts | self.kl_of_points() | ({"kl_V": self.input_map.kl()} if self.input_map.means else {})

    def kl_of_points(self) -> dict[str, Float[Array, ""]]:
        """Return the cost of the points of a local output layer: of its scale, and of its input kernel's lengthscales.

        The scale has a log-uniform prior. The logarithms of the lengthscales of columns have a Cauchy prior
        around their median (`Stationary.cost_of_lengthscales`).
        """
        if self.output is None or not self.output.local:
            return {}
        assert self.input_kernel is not None
        return {
            "kl_scale": jnp.maximum(self.log_scale[self.output.layer, 0] - np.log(LEAST_SCALE), 0),
            "kl_lengthscales": self.input_kernel.cost_of_lengthscales(),
        }

    @property
    def has_separable_output(self) -> bool:
        """Whether the prior of the integrated outputs is separable: a GP of their own, and equal weight noise."""
        return self.output is not None and self.output.group is None and self.output.weight_noise.slope_out is None

    @property
    def has_local_output(self) -> bool:
        """Whether the input kernel modulates the integrated output layer."""
        return self.output is not None and self.output.local

    @property
    def couples_rows(self) -> bool:
        """Whether the rows of one call are drawn jointly: in a local layer, if the conditional does so."""
        return any(self.conditional.couples_rows and is_local for is_local in self.local)


class PreparedMetaGP(PreparedWeights):
    """A MetaGP with what all draws share: L^-1 of every GP with free codes, q(u) of every GP with anchored codes."""

    model: MetaGP
    roots: list[Array | Posterior]
    used_jitter: Float[Array, ""]

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter that a factor needed."""
        return self.used_jitter

    def draw(self, normals: StandardNormals) -> "MetaGPDraw":
        """Draw z and V, then every GP given them."""
        model = self.model
        z = model.latents.draw(normals.latents)
        size_v = model.input_map.num_normals
        weights, spectral, groups = normals.weights[size_v:], normals.spectral, []
        for g in range(len(model.sparse_gps)):
            sizes = model.group_sizes(g)
            part = StandardNormals(normals.latents, weights[: sizes.weights], spectral[: sizes.spectral], normals.rows)
            weights, spectral = weights[sizes.weights :], spectral[sizes.spectral :]
            groups.append(_drawn_group(model, g, z, self.roots[g], part))
        projections = model.input_map.draw(normals.weights[:size_v])
        return MetaGPDraw(model, projections, [drawn for drawn, _ in groups], z, [own for _, own in groups])


class OwnValues(eqx.Module):
    """A draw of anchored values: L^-1, the values, their KL, and the jitter that was needed."""

    inverse_root: Float[Array, "M M"] | None
    values: Float[Array, " M"]
    kl: Float[Array, ""]
    jitter: Float[Array, ""]


def _drawn_group(
    model: MetaGP, g: int, z: Float[Array, "U Dz"], root: Array | Posterior, normals: StandardNormals
) -> tuple[ConditionalDraw, OwnValues | None]:
    """Return one draw of the layers that share a GP."""
    sparse_gp, kernel = model.sparse_gps[g], model.kernel_of(g)
    layer_latents = [
        LayerLatents(
            _rows(z, weight_layer.inputs), _rows(z, weight_layer.outputs), weight_layer, jnp.exp(model.log_scale[layer])
        )
        for layer, weight_layer in zip(model.groups[g], model.group_layers(g), strict=True)
    ]
    if isinstance(sparse_gp, SparseGP):
        assert not isinstance(root, Posterior)
        return model.conditional.draw(
            GPContext(sparse_gp, kernel, root, model.weight_noise), layer_latents, normals
        ), None
    assert isinstance(root, Posterior)
    # These are the normals from which the conditional draws the same values.
    u = root.draw(normals.weights[: sparse_gp.n_inducing])
    if sparse_gp.whole and _is_grid(model, g):
        noise_std = jnp.exp(model.weight_noise.log_std)
        kl = sparse_gp.kl_on_grid(layer_latents[0].z_in, layer_latents[0].z_out, noise_std)
        return WholeDraw(u, layer_latents), OwnValues(None, u, kl, jnp.zeros((), z.dtype))
    inverse_root, used = jittered_inverse_root(sparse_gp.gram(z, kernel, model.weight_noise), model._jitter)
    own = OwnValues(inverse_root, u, root.kl(inverse_root), used)
    if sparse_gp.whole:
        return WholeDraw(u, layer_latents), own
    placed = GPContext(sparse_gp.placed(z, root, inverse_root), kernel, inverse_root, model.weight_noise)
    return model.conditional.draw(placed, layer_latents, normals), own


def _is_grid(model: MetaGP, g: int) -> bool:
    """Return whether a GP has one layer and can use the Kronecker form of its KL."""
    sparse_gp, noise = model.sparse_gps[g], model.weight_noise
    shared = model.output is not None and model.output.group == g
    return len(model.groups[g]) == 1 and not shared and noise.slope_in is None and sparse_gp.below_diagonal is None


class WholeDraw(ConditionalDraw):
    """Weights that are the drawn values themselves, in the order of the layers."""

    values: Float[Array, " W"]
    scales: list[Array]
    shapes: tuple[tuple[int, int], ...] = eqx.field(static=True)

    def __init__(self, values: Float[Array, " W"], layer_latents: Sequence[LayerLatents]) -> None:
        """Store the values, and the scales and shape of every layer."""
        self.values = values
        self.scales = [input_scales(e.scale, e.z_in.shape[0])[:, None] for e in layer_latents]
        self.shapes = tuple((e.z_in.shape[0], e.z_out.shape[0]) for e in layer_latents)

    def weights(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the values times the scales of the layers."""
        starts = np.cumsum([0, *[i * j for i, j in self.shapes]])
        parts = [self.values[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]
        return [s * p.reshape(shape) for s, p, shape in zip(self.scales, parts, self.shapes, strict=True)]

    def at(self, eps: Float[Array, "B E"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return h -> h w."""
        return [_product(w) for w in self.weights(eps, rows)]


def _product(w: Array) -> Layer:
    return lambda h: h @ w


class MetaGPDraw(WeightDraw):
    """One draw of z, V, u and the weights."""

    model: MetaGP
    projections: list[Array]
    draws: list[ConditionalDraw]
    z: Float[Array, "U Dz"]
    own: list[OwnValues | None]

    def _by_group(self, x: Array, rows: Array) -> list[tuple[Array, Array]]:
        eps = self.aux_inputs(x)
        sizes = [self.model.group_sizes(g).per_row for g in range(len(self.draws))]
        starts = np.cumsum([0, *sizes])
        return [(eps, rows[:, a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)]

    def _in_order(self, grouped: Sequence[Sequence[T]]) -> list[T]:
        order = [layer for group in self.model.groups for layer in group]
        flat = [item for group in grouped for item in group]
        return [flat[order.index(layer)] for layer in range(len(order))]

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return the layers of all GPs, in the order of the network."""
        parts = zip(self.draws, self._by_group(x, rows), strict=True)
        return self._in_order([draw.at(eps, own) for draw, (eps, own) in parts])

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the explicit weights of all GPs, in the order of the network."""
        parts = zip(self.draws, self._by_group(x, rows), strict=True)
        return self._in_order([draw.weights(eps, own) for draw, (eps, own) in parts])

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KL of the anchored values, whose prior depends on z."""
        parts = [own.kl for own in self.own if own is not None]
        return {"kl_u": sum(parts[1:], parts[0])} if parts else {}

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter that a factor of this draw needed."""
        parts = [own.jitter for own in self.own if own is not None]
        return jnp.max(jnp.stack([jnp.zeros((), self.z.dtype), *parts]))

    def aux_inputs(self, x: Float[Array, "B D"]) -> Float[Array, "B E"]:
        """Return eps, or x itself in a global model."""
        return self.model.input_map(self.projections, x) if self.model.input_kernel is not None else x

    def output_prior(self) -> OutputPrior:
        """Return the prior of the output weights, given the values of the same GP that were drawn below."""
        model, output = self.model, self.model.output
        assert output is not None
        weight_layer = model.weight_layers[output.layer]
        z_in, z_out = _rows(self.z, weight_layer.inputs), _rows(self.z, weight_layer.outputs)
        source = output if output.group is None else model.sparse_gps[output.group]
        kernel_in, kernel_out = source.kernel_in, source.kernel_out
        assert kernel_in is not None
        assert kernel_out is not None
        return OutputPrior(
            kernel_in(z_in, z_in),
            kernel_out(z_out, z_out),
            output.weight_noise.std_in(z_in),
            None if output.weight_noise.slope_out is None else output.weight_noise.std_out(z_out),
            input_scales(jnp.exp(model.log_scale[output.layer]), len(weight_layer.inputs)),
            model.input_kernel if output.local else None,
            None if output.group is None else self._known(output.group, z_in, z_out),
            model.start_jitter,
            output.local_noise,
        )

    def _known(self, group: int, z_in: Array, z_out: Array) -> KnownValues:
        """Return the values of the shared GP that were drawn below."""
        sparse_gp, own = self.model.sparse_gps[group], self.own[group]
        assert isinstance(sparse_gp, Anchored)
        assert own is not None
        assert own.inverse_root is not None
        code_in, code_out = sparse_gp.codes(self.z)
        joined_in, joined_out = jnp.concatenate([z_in, code_in]), jnp.concatenate([z_out, code_out])
        return KnownValues(
            sparse_gp.kernel_in(z_in, code_in),
            sparse_gp.kernel_out(z_out, code_out),
            own.inverse_root,
            own.inverse_root.T @ (own.inverse_root @ own.values),
            sparse_gp.code_aux,
            sparse_gp.kernel_in(joined_in, joined_in),
            sparse_gp.kernel_out(joined_out, joined_out),
            sparse_gp.noise_of_values(self.z, self.model.weight_noise),
        )


def _rows(z: Array, units: range) -> Array:
    return z[units.start : units.stop]
