"""Mean-field weights: each is an independent Gaussian, with prior N(0, prior_scale^2).

The scale of the prior is given, or learned for each layer: one scale for its weights and one for its biases.

Training draws pre-activations rather than weights (local reparameterisation). h W is Gaussian with mean h M and
variance h^2 S^2, and each row has its own draw. This costs 2 B I J, and the variance of the gradient falls with the
number of rows. Prediction draws weights that all rows share, so that a draw is a function.
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

#: Standard deviation of q(w) at the start. It is small, because with a large one nothing is learned.
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
        """Start from random weights with standard deviation `INITIAL_STD`."""
        means = starting_weights(network, rng)
        return cls(means, tuple(np.full_like(m, np.log(INITIAL_STD)) for m in means), prior_scale)

    def sizes(self) -> NormalCounts:
        """Return one normal per weight, or one per output unit and row."""
        if self.by_row:
            return NormalCounts(per_row=sum(m.shape[1] for m in self.means))
        return NormalCounts(weights=sum(int(np.prod(m.shape)) for m in self.means))

    def prepared(self) -> "PreparedMeanField":
        """Return the model as it is."""
        return PreparedMeanField(self)

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return KL[q(w) || p(w)], for the given scale of the prior or the learned ones."""
        parts = zip(self.means, self.log_stds, self.prior_logs(), strict=True)
        return {"kl_w": sum((gaussian_kl(m / jnp.exp(l), s - l) for m, s, l in parts), jnp.zeros(()))}

    def prior_logs(self) -> Sequence[Leaf | float]:
        """Return the log standard deviation of the prior, for every layer one number or one per input unit."""
        if self.log_scales is None:
            return [np.log(self.prior_scale)] * len(self.means)
        return [_input_logs(s, len(m)) for s, m in zip(self.log_scales, self.means, strict=True)]

    def for_prediction(self) -> "MeanField":
        """Return the model that draws weights, not pre-activations."""
        return switched(self, by_row=False)


def _input_logs(log_scale: Float[Leaf, "2"], num_inputs: int) -> Float[Array, "I 1"]:
    """Return the log scale of every input unit; the bias unit is last."""
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
    """Independent Gaussian weights; each row draws its own pre-activations."""

    means: list[Leaf]
    stds: list[Array]

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return h -> h M + sqrt(h^2 S^2) * normals of the row."""
        layer_latents = np.cumsum([m.shape[1] for m in self.means])
        normals = jnp.split(rows, layer_latents[:-1].tolist(), axis=1)

        def layer(mean: Leaf, std: Array, own: Array) -> Layer:
            # The activation of the bias unit is 1, so no variance is 0.
            return lambda h: h @ mean + jnp.sqrt((h * h) @ (std * std)) * own

        return [layer(m, s, e) for m, s, e in zip(self.means, self.stds, normals, strict=True)]

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the mean weights; the rest is noise that each row draws for itself."""
        return [jnp.asarray(m) for m in self.means]
