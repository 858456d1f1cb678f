"""MetaNN (Karaletsos, Dayan, Ghahramani 2018): a small network maps the code of a weight to the weight.

w_ij = s (mean(z_i, z_j) + std(z_i, z_j) n_ij) with n_ij ~ N(0, 1). If `implicit`, w_ij = s mean(z_i, z_j, n_ij): the
normal is one more input of the small network, and the distribution of a weight can have any shape. q(z) is a mean-field
Gaussian. The small network is a point estimate, and a weight given its code keeps its prior, so only z has a KL. As in
MetaGP, every layer has one scale s for its weights and one for its biases. The first layer of the small network is a
sum over the two units, so a layer of weights costs I J H.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.latents import UnitLatents
from metaprior.networks import Network, WeightLayer
from metaprior.random import NormalCounts, StandardNormals, take
from metaprior.types import Leaf
from metaprior.weights.base import PreparedWeights, WeightModel
from metaprior.weights.point import ExplicitDraw

#: Standard deviation at the start of a weight given its code, relative to the scale of the layer.
INITIAL_STD = 0.02


class MetaNN(WeightModel):
    """Weights computed from their codes by a small network."""

    latents: UnitLatents
    from_input: Float[Leaf, "Dz H"]
    from_output: Float[Leaf, "Dz H"]
    from_normals: Float[Leaf, " H"]
    hidden_bias: Float[Leaf, " H"]
    to_mean: Float[Leaf, " H"]
    to_log_std: Float[Leaf, " H"]
    log_std: Float[Leaf, ""]
    log_scale: Float[Leaf, "L 2"]
    weight_layers: tuple[WeightLayer, ...] = eqx.field(static=True)
    implicit: bool = eqx.field(static=True, default=False)

    @classmethod
    def initial(
        cls,
        network: Network,
        latent_dim: int,
        num_hidden: int,
        rng: np.random.Generator,
        *,
        implicit: bool = False,
    ) -> "MetaNN":
        """Start from a random small network that produces weights of the usual spread."""
        return cls(
            latents=UnitLatents.initial(network.num_units, latent_dim, rng),
            from_input=rng.standard_normal((latent_dim, num_hidden)),
            from_output=rng.standard_normal((latent_dim, num_hidden)),
            from_normals=INITIAL_STD * rng.standard_normal(num_hidden),
            hidden_bias=rng.standard_normal(num_hidden),
            to_mean=1.5 * rng.standard_normal(num_hidden) / np.sqrt(num_hidden),
            to_log_std=np.zeros(num_hidden),
            log_std=np.asarray(np.log(INITIAL_STD)),
            log_scale=np.array([[-0.5 * np.log(len(w.inputs) - 1), 0.0] for w in network.weight_layers]),
            weight_layers=network.weight_layers,
            implicit=implicit,
        )

    def sizes(self) -> NormalCounts:
        """Return the normals of the latents, and one per weight."""
        return NormalCounts(latents=self.latents.num_normals, weights=sum(w.num_weights for w in self.weight_layers))

    def prepared(self) -> "PreparedMetaNN":
        """Return the model as it is."""
        return PreparedMetaNN(self)

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KL of z."""
        return {"kl_z": self.latents.kl()}

    def layer_weights(self, layer: int, z: Float[Array, "U Dz"], normals: Float[Array, "I J"]) -> Float[Array, "I J"]:
        """Return the weights of a layer for given latents and normals."""
        weight_layer = self.weight_layers[layer]
        z_in, z_out = (
            z[weight_layer.inputs.start : weight_layer.inputs.stop],
            z[weight_layer.outputs.start : weight_layer.outputs.stop],
        )
        before = (z_in @ self.from_input)[:, None] + (z_out @ self.from_output)[None] + self.hidden_bias
        if self.implicit:
            before = before + normals[:, :, None] * self.from_normals
        hidden = jnp.tanh(before)
        weights = hidden @ self.to_mean
        if not self.implicit:
            weights = weights + jnp.exp(self.log_std + hidden @ self.to_log_std) * normals
        weight_scale, bias_scale = jnp.exp(self.log_scale[layer])
        return weights * jnp.full(weights.shape[0], weight_scale).at[-1].set(bias_scale)[:, None]


class PreparedMetaNN(PreparedWeights):
    """MetaNN needs no preparation."""

    model: MetaNN

    def draw(self, normals: StandardNormals) -> ExplicitDraw:
        """Draw the latents and every weight given its code."""
        model = self.model
        z = model.latents.draw(normals.latents)
        own = take(normals.weights, *[(len(w.inputs), len(w.outputs)) for w in model.weight_layers])

        def weights(layer: int) -> Array:
            # The [I, J, H] values are recomputed for the derivative instead of stored.
            compute = jax.checkpoint(lambda model, z, e: model.layer_weights(layer, z, e))
            return compute(model, z, own[layer])

        return ExplicitDraw([weights(layer) for layer in range(len(model.weight_layers))])
