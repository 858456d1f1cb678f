"""The hinge: one weight model, one network and one likelihood make a model of y given x.

Where the output layer is integrated, the weight model draws everything below it and `output` is the regime.
"""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.leaves import Fixed
from metaprior.likelihoods import Likelihood
from metaprior.networks import Network
from metaprior.noise import Noise, NoiseSizes
from metaprior.output_layer import OutputLayer
from metaprior.weights import PreparedWeights, WeightModel


class Model(eqx.Module):
    """p(y | x) = E over weights of likelihood(y | network(x; weights))."""

    weights: WeightModel
    network: Network
    likelihood: Likelihood
    output: OutputLayer | None = None

    def sizes(self) -> NoiseSizes:
        """Return how many standard normals a draw takes: the weights', and for every row the output layer's."""
        sizes = self.weights.sizes()
        if self.output is None:
            return sizes
        num_outputs = len(self.network.wires[-1].outputs)
        return sizes._replace(per_row=sizes.per_row + self.output.row_normals(self.likelihood, num_outputs))

    def functions(self, prepared: PreparedWeights, noise: Noise, x: Float[Array, "B D"]) -> Float[Array, "S B K"]:
        """Return the network's outputs for every draw along the noise's leading axis."""

        def one(draw_noise: Noise) -> Array:
            return prepared.draw(draw_noise).outputs(self.network, x, draw_noise.rows)

        return jax.vmap(one)(noise)


def release_times(model: Model) -> Model:
    """Return a tree like the model: the part of training for which each leaf is held; inf where it is fixed."""
    special = (Kernel, Likelihood, Fixed)
    return jax.tree.map(
        lambda node: node.release_times() if isinstance(node, special) else 0.0,
        model,
        is_leaf=lambda node: isinstance(node, special),
    )


def projected(model: Model) -> Model:
    """Return the model with every bounded hyper-parameter inside its bounds."""
    return jax.tree.map(
        lambda node: node.projected() if isinstance(node, Kernel) else node,
        model,
        is_leaf=lambda node: isinstance(node, Kernel),
    )
