"""Point weights: one value each, with a Gaussian prior. Their "KL" is -log p(w), so the ELBO is the log joint density.

Training then gives the MAP estimate, and a sampler of the weights can use the same log joint density.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.networks import Layer, Network
from metaprior.random import NormalCounts, StandardNormals
from metaprior.types import Leaf
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel


def starting_weights(network: Network, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return weights of variance 1 / fan-in, and hidden biases of variance 1 so that units bend at different inputs."""
    weights = []
    for index, weight_layer in enumerate(network.weight_layers):
        num_in, num_out = len(weight_layer.inputs) - 1, len(weight_layer.outputs)
        last = index == len(network.weight_layers) - 1
        bias = np.zeros((1, num_out)) if last else rng.standard_normal((1, num_out))
        weights.append(np.concatenate([rng.standard_normal((num_in, num_out)) / np.sqrt(num_in), bias]))
    return tuple(weights)


def product(weight: Leaf) -> Layer:
    """Return the layer of explicit weights: h -> h W."""
    return lambda h: h @ weight


class Point(WeightModel):
    """Weights with one value each and the prior N(0, prior_scale^2)."""

    values: tuple[Float[Leaf, "_ _"], ...]
    prior_scale: float = eqx.field(static=True, default=1.0)

    @classmethod
    def initial(cls, network: Network, rng: np.random.Generator, prior_scale: float = 1.0) -> "Point":
        """Start from the random weights of `starting_weights`."""
        return cls(starting_weights(network, rng), prior_scale)

    def sizes(self) -> NormalCounts:
        """Return zero counts, because nothing is drawn."""
        return NormalCounts()

    def prepared(self) -> "PreparedPoint":
        """Return the weights as they are."""
        return PreparedPoint(self)

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return -log p(w)."""
        return {"kl_w": -gaussian_log_density(self.values, self.prior_scale)}


def gaussian_log_density(values: Sequence[Leaf], scale: float) -> Float[Array, ""]:
    """Return sum log N(w; 0, scale^2)."""
    squares = sum((jnp.sum((v / scale) ** 2) for v in values), jnp.zeros(()))
    size = sum(int(np.prod(v.shape)) for v in values)
    return -0.5 * squares - size * (np.log(scale) + 0.5 * np.log(2 * np.pi))


class PreparedPoint(PreparedWeights):
    """Point weights need no preparation."""

    model: Point

    def draw(self, normals: StandardNormals) -> "ExplicitDraw":
        """Return the values, which are the same in every draw."""
        return ExplicitDraw(list(self.model.values))


class ExplicitDraw(WeightDraw):
    """Explicit weights that are the same for every input."""

    values: Sequence[Leaf]

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return h -> h W for every layer."""
        return [product(value) for value in self.values]

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the values."""
        return [jnp.asarray(value) for value in self.values]
