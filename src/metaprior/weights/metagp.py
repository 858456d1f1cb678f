"""MetaGP and MetaGP-local: the weights of a network are values of a Gaussian process over their codes.

w = s (f(code) + sigma_w noise), code = [z_in, z_out] or, where the layer is local, [z_in, z_out, eps(x)]; every layer
has a scale s for its weights, 1/sqrt(fan-in) at the start, and one for its biases: so the data can say, for instance,
that only the input kernel and not the input itself carries the signal.

One GP serves all layers (`mapping="global"`) or each has its own
(`"layer"`); local layers and others never share one, for their codes live in different spaces. One input kernel
serves the network: separate ones drift apart and cost extrapolation.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.inputs import InputMap
from metaprior.kernels import Kernel
from metaprior.leaves import Leaf
from metaprior.mapping import Conditional, ConditionalDraw, Ends, Mapping, Prior, WeightNoise
from metaprior.networks import Layer, Wire
from metaprior.noise import Noise, NoiseSizes
from metaprior.units import Units
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel


class MetaGP(WeightModel):
    """A Gaussian-process prior over the weights of a network."""

    units: Units
    mappings: tuple[Mapping, ...]
    input_kernel: Kernel | None
    input_map: InputMap
    log_scale: Float[Leaf, "L 2"]
    weight_noise: WeightNoise
    wires: tuple[Wire, ...] = eqx.field(static=True)
    groups: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    local: tuple[bool, ...] = eqx.field(static=True)
    conditional: Conditional
    start_jitter: float = eqx.field(static=True, default=1e-4)

    def kernel_of(self, group: int) -> Kernel | None:
        """Return the input kernel of a group of layers, None where it is global."""
        return self.input_kernel if self.local[group] else None

    def group_wires(self, group: int) -> list[Wire]:
        """Return the wires of the layers that share a mapping."""
        return [self.wires[layer] for layer in self.groups[group]]

    def group_sizes(self, group: int) -> NoiseSizes:
        """Return the normals of one mapping's draw."""
        return self.conditional.sizes(self.mappings[group], self.kernel_of(group), self.group_wires(group))

    def sizes(self) -> NoiseSizes:
        """Latents, then V and every mapping's own."""
        groups = [self.group_sizes(g) for g in range(len(self.mappings))]
        return NoiseSizes(
            units=self.units.num_normals,
            weights=self.input_map.num_normals + sum(g.weights for g in groups),
            spectral=sum(g.spectral for g in groups),
            per_row=sum(g.per_row for g in groups),
        )

    def prepared(self) -> "PreparedMetaGP":
        """Factor every K_uu. Cost M^3 a mapping."""
        jitter = jnp.asarray(self.start_jitter, self.units.mean.dtype)
        roots = [m.inverse_root(self.kernel_of(g), jitter) for g, m in enumerate(self.mappings)]
        return PreparedMetaGP(self, [root for root, _ in roots], jnp.max(jnp.stack([used for _, used in roots])))

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the parts of z, of v and, where there is one, of V."""
        parts = {"kl_z": self.units.kl(), "kl_u": sum((m.kl() for m in self.mappings), jnp.zeros(()))}
        return parts | ({"kl_V": self.input_map.kl()} if self.input_map.means else {})

    @property
    def couples_rows(self) -> bool:
        """Whether a conditional draws the rows of a call jointly."""
        return any(self.conditional.couples_rows and is_local for is_local in self.local)


class PreparedMetaGP(PreparedWeights):
    """A MetaGP with its factors."""

    model: MetaGP
    inverse_roots: list[Array]
    used_jitter: Float[Array, ""]

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter of the factors."""
        return self.used_jitter

    def draw(self, noise: Noise) -> "MetaGPDraw":
        """Draw z and V, then every mapping given them."""
        model = self.model
        z = model.units.draw(noise.units)
        size_v = model.input_map.num_normals
        weights, spectral, draws = noise.weights[size_v:], noise.spectral, []
        for g, mapping in enumerate(model.mappings):
            sizes = model.group_sizes(g)
            part = Noise(noise.units, weights[: sizes.weights], spectral[: sizes.spectral], noise.rows)
            weights, spectral = weights[sizes.weights :], spectral[sizes.spectral :]
            ends = [
                Ends(_rows(z, wire.inputs), _rows(z, wire.outputs), wire, jnp.exp(model.log_scale[layer]))
                for layer, wire in zip(model.groups[g], model.group_wires(g), strict=True)
            ]
            prior = Prior(mapping, model.kernel_of(g), self.inverse_roots[g], model.weight_noise)
            draws.append(model.conditional.draw(prior, ends, part))
        return MetaGPDraw(model, model.input_map.draw(noise.weights[:size_v]), draws)


class MetaGPDraw(WeightDraw):
    """One draw of z, V, u and the weights."""

    model: MetaGP
    projections: list[Array]
    draws: list[ConditionalDraw]

    def _by_group(self, x: Array, rows: Array) -> list[tuple[Array, Array]]:
        eps = self.model.input_map(self.projections, x) if self.model.input_kernel is not None else x
        sizes = [self.model.group_sizes(g).per_row for g in range(len(self.draws))]
        starts = np.cumsum([0, *sizes])
        return [(eps, rows[:, a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)]

    def _in_order(self, grouped: Sequence[Sequence]) -> list:
        order = [layer for group in self.model.groups for layer in group]
        flat = [item for group in grouped for item in group]
        return [flat[order.index(layer)] for layer in range(len(order))]

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return the mappings' layers."""
        parts = zip(self.draws, self._by_group(x, rows), strict=True)
        return self._in_order([draw.at(eps, own) for draw, (eps, own) in parts])

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the mappings' explicit weights."""
        parts = zip(self.draws, self._by_group(x, rows), strict=True)
        return self._in_order([draw.weights(eps, own) for draw, (eps, own) in parts])


def _rows(z: Array, units: range) -> Array:
    return z[units.start : units.stop]
