"""Mean-field weights: an independent Gaussian each, under the prior N(0, prior_scale^2).

Training draws pre-activations rather than weights (local reparameterisation): h W is Gaussian with mean h M and
variance h^2 S^2, every row its own draw. Cost B I J twice; the gradient's variance falls with the number of rows.
Prediction draws weights, shared by all rows, so that a draw is a function.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.leaves import Leaf
from metaprior.networks import Layer, Network
from metaprior.noise import Noise, NoiseSizes, take
from metaprior.units import gaussian_kl
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel, switched
from metaprior.weights.point import ExplicitDraw, starting_weights

#: Standard deviation at the start, as a part of the start's own spread: small, or nothing is learned.
INITIAL_STD = 0.02


class MeanField(WeightModel):
    """q(w) = N(mean, std^2), weight by weight.

    The prior's scale is one number, or (`log_scales`) learned: one for the weights and one for the biases of a layer.
    """

    means: tuple[Float[Leaf, "_ _"], ...]
    log_stds: tuple[Float[Leaf, "_ _"], ...]
    prior_scale: float = eqx.field(static=True, default=1.0)
    by_row: bool = eqx.field(static=True, default=True)
    log_scales: Float[Leaf, "L 2"] | None = None

    @classmethod
    def initial(cls, network: Network, rng: np.random.Generator, prior_scale: float = 1.0) -> "MeanField":
        """Start from the usual random weights, nearly certain of them."""
        return cls._around(starting_weights(network, rng), prior_scale)

    @classmethod
    def of_layers(cls, network: Network, layers: Sequence[int], rng: np.random.Generator) -> "MeanField":
        """Start some layers of a network, with scales of the prior that are learned: 1/sqrt(fan-in) and 1 at first."""
        started = starting_weights(network, rng)
        means = tuple(started[layer] for layer in layers)
        scales = np.array([[-0.5 * np.log(len(m) - 1), 0.0] for m in means])
        return switched(cls._around(means), log_scales=scales)

    @classmethod
    def _around(cls, means: tuple[np.ndarray, ...], prior_scale: float = 1.0) -> "MeanField":
        return cls(means, tuple(np.full_like(m, np.log(INITIAL_STD)) for m in means), prior_scale)

    def sizes(self) -> NoiseSizes:
        """One normal a weight, or one an output unit for every row."""
        if self.by_row:
            return NoiseSizes(per_row=sum(m.shape[1] for m in self.means))
        return NoiseSizes(weights=sum(int(np.prod(m.shape)) for m in self.means))

    def prepared(self) -> "PreparedMeanField":
        """Return the model as it is."""
        return PreparedMeanField(self)

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return KL[q(w) || N(0, scale^2)]."""
        total = jnp.zeros(())
        for layer, (mean, log_std) in enumerate(zip(self.means, self.log_stds, strict=True)):
            log_scale = self._log_scale(layer, len(mean))
            total = total + gaussian_kl(mean * jnp.exp(-log_scale), log_std - log_scale)
        return {"kl_w": total}

    def _log_scale(self, layer: int, num_inputs: int) -> Float[Array, "I 1"] | Float[Array, ""]:
        """Return the log of the prior's scale, a row of the layer's weights at a time; the last is the bias."""
        if self.log_scales is None:
            return jnp.asarray(np.log(self.prior_scale), self.means[layer].dtype)
        is_bias = (np.arange(num_inputs) == num_inputs - 1).astype(int)
        return jnp.asarray(self.log_scales)[layer][is_bias][:, None]

    def for_prediction(self) -> "MeanField":
        """Draw weights, not pre-activations."""
        return switched(self, by_row=False)


class PreparedMeanField(PreparedWeights):
    """Mean-field weights need no preparation."""

    model: MeanField

    def draw(self, noise: Noise) -> WeightDraw:
        """Return weights, or the Gaussians of the pre-activations."""
        model = self.model
        if model.by_row:
            return PreActivationDraw(list(model.means), [jnp.exp(s) for s in model.log_stds])
        normals = take(noise.weights, *[m.shape for m in model.means])
        parts = zip(model.means, model.log_stds, normals, strict=True)
        return ExplicitDraw([m + jnp.exp(s) * e for m, s, e in parts])


class PreActivationDraw(WeightDraw):
    """Independent Gaussian weights; every row draws its own pre-activations."""

    means: list[Leaf]
    stds: list[Array]

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return h -> h M + sqrt(h^2 S^2) * the row's normals."""
        ends = np.cumsum([m.shape[1] for m in self.means])
        normals = jnp.split(rows, ends[:-1].tolist(), axis=1)

        def layer(mean: Leaf, std: Array, own: Array) -> Layer:
            # the bias unit's activation is 1, so no variance is 0
            return lambda h: h @ mean + jnp.sqrt((h * h) @ (std * std)) * own

        return [layer(m, s, e) for m, s, e in zip(self.means, self.stds, normals, strict=True)]

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the mean weights: the rest is noise that each row draws for itself."""
        return [jnp.asarray(m) for m in self.means]
