"""Mean-field weights: an independent Gaussian each, under the prior N(0, prior_scale^2).

The prior's scale is given, or learned: one for the weights of a layer and one for its biases.

Training draws pre-activations rather than weights (local reparameterisation): h W is Gaussian with mean h M and
variance h^2 S^2, every row its own draw. Cost B I J twice; the gradient's variance falls with the number of rows.
Prediction draws weights, shared by all rows, so that a draw is a function.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.latents import gaussian_kl
from metaprior.networks import Layer, Network
from metaprior.random import NormalCounts, StandardNormals, take
from metaprior.types import Leaf
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel, switched
from metaprior.weights.point import ExplicitDraw, starting_weights

#: Standard deviation at the start, as a part of the start's own spread: small, or nothing is learned.
INITIAL_STD = 0.02


class MeanField(WeightModel):
    """q(w) = N(mean, std^2), weight by weight."""

    means: tuple[Float[Leaf, "_ _"], ...]
    log_stds: tuple[Float[Leaf, "_ _"], ...]
    prior_scale: float = eqx.field(static=True, default=1.0)
    by_row: bool = eqx.field(static=True, default=True)
    log_scales: tuple[Float[Leaf, "2"], ...] | None = None

    @classmethod
    def initial(cls, network: Network, rng: np.random.Generator, prior_scale: float = 1.0) -> "MeanField":
        """Start from the usual random weights, nearly certain of them."""
        means = starting_weights(network, rng)
        return cls(means, tuple(np.full_like(m, np.log(INITIAL_STD)) for m in means), prior_scale)

    def sizes(self) -> NormalCounts:
        """One normal per weight, or one per output unit and row."""
        if self.by_row:
            return NormalCounts(per_row=sum(m.shape[1] for m in self.means))
        return NormalCounts(weights=sum(int(np.prod(m.shape)) for m in self.means))

    def prepared(self) -> "PreparedMeanField":
        """Return the model as it is."""
        return PreparedMeanField(self)

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return KL[q(w) || N(0, prior_scale^2)]."""
        logs: Sequence[Leaf | float] = [np.log(self.prior_scale)] * len(self.means)
        if self.log_scales is not None:
            logs = [_input_logs(s, len(m)) for s, m in zip(self.log_scales, self.means, strict=True)]
        parts = zip(self.means, self.log_stds, logs, strict=True)
        return {"kl_w": sum((gaussian_kl(m / jnp.exp(l), s - l) for m, s, l in parts), jnp.zeros(()))}

    def for_prediction(self) -> "MeanField":
        """Draw weights, not pre-activations."""
        return switched(self, by_row=False)


def _input_logs(log_scale: Float[Leaf, "2"], num_inputs: int) -> Float[Array, "I 1"]:
    """Return the log of every input unit's scale; the bias unit stands last."""
    return jnp.where(np.arange(num_inputs)[:, None] < num_inputs - 1, log_scale[0], log_scale[1])


class PreparedMeanField(PreparedWeights):
    """Mean-field weights need no preparation."""

    model: MeanField

    def draw(self, normals: StandardNormals) -> WeightDraw:
        """Return weights, or the Gaussians of the pre-activations."""
        model = self.model
        if model.by_row:
            return PreActivationDraw(list(model.means), [jnp.exp(s) for s in model.log_stds])
        own = take(normals.weights, *[m.shape for m in model.means])
        parts = zip(model.means, model.log_stds, own, strict=True)
        return ExplicitDraw([m + jnp.exp(s) * e for m, s, e in parts])


class PreActivationDraw(WeightDraw):
    """Independent Gaussian weights; every row draws its own pre-activations."""

    means: list[Leaf]
    stds: list[Array]

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return h -> h M + sqrt(h^2 S^2) * the row's normals."""
        layer_latents = np.cumsum([m.shape[1] for m in self.means])
        normals = jnp.split(rows, layer_latents[:-1].tolist(), axis=1)

        def layer(mean: Leaf, std: Array, own: Array) -> Layer:
            # the bias unit's activation is 1, so no variance is 0
            return lambda h: h @ mean + jnp.sqrt((h * h) @ (std * std)) * own

        return [layer(m, s, e) for m, s, e in zip(self.means, self.stds, normals, strict=True)]

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the mean weights: the rest is noise that each row draws for itself."""
        return [jnp.asarray(m) for m in self.means]
