"""The model of y given x, which consists of one weight model, one network and one likelihood.

If the output layer is integrated out, the weight model draws everything below it and `output` is the regime. If
hyper-parameters are uncertain (`hypers`), they are drawn first.
"""

import dataclasses

import equinox as eqx
import jax
from jaxtyping import Array, Float

from metaprior.hypers import HyperPosterior
from metaprior.kernels import Kernel
from metaprior.likelihoods import Likelihood
from metaprior.networks import Network
from metaprior.output_layer import OutputLayer
from metaprior.random import NormalCounts, StandardNormals
from metaprior.types import Fixed
from metaprior.weights import PreparedWeights, WeightModel


class Model(eqx.Module):
    """p(y | x) = E over weights of likelihood(y | network(x; weights))."""

    weights: WeightModel
    network: Network
    likelihood: Likelihood
    output: OutputLayer | None = None
    hypers: HyperPosterior | None = None

    def with_hypers(self, normals: StandardNormals) -> "tuple[Model, StandardNormals]":
        """Return the model with hyper-parameters drawn from the first normals, and the remaining normals."""
        if self.hypers is None:
            return self, normals
        size, bare = self.hypers.num_normals, dataclasses.replace(self, hypers=None)
        rest = dataclasses.replace(normals, weights=normals.weights[size:])
        return projected(self.hypers.moved(bare, normals.weights[:size])), rest

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KL that does not depend on a draw: of the weight model, and of the hyper-parameters."""
        own = self.weights.kl()
        if self.hypers is None:
            return own
        # Uncertain hyper-parameters have their own prior, and are no points.
        points = self.weights.kl_of_points()
        others = {name: value for name, value in own.items() if name not in points}
        return {**others, "kl_theta": self.hypers.kl(dataclasses.replace(self, hypers=None))}

    def sizes(self) -> NormalCounts:
        """Return how many normals a draw needs: for hyper-parameters, weights, and each row of the output layer."""
        sizes = self.weights.sizes()
        if self.hypers is not None:
            sizes = sizes._replace(weights=sizes.weights + self.hypers.num_normals)
        if self.output is None:
            return sizes
        num_outputs = len(self.network.weight_layers[-1].outputs)
        return sizes._replace(per_row=sizes.per_row + self.output.row_normals(self.likelihood, num_outputs))

    def functions(
        self, prepared: PreparedWeights, normals: StandardNormals, x: Float[Array, "B D"]
    ) -> Float[Array, "S B K"]:
        """Return the network's outputs for every draw; `normals` have a leading axis of draws."""

        def one(draw_normals: StandardNormals) -> Array:
            return prepared.draw(draw_normals).outputs(self.network, x, draw_normals.rows)

        return jax.vmap(one)(normals)


def release_times(model: Model) -> Model:
    """Return a tree like the model: the fraction of training for which each leaf is held; inf if it is fixed."""
    special = (Kernel, Likelihood, Fixed)
    return jax.tree.map(
        lambda node: node.release_times() if isinstance(node, special) else 0.0,
        model,
        is_leaf=lambda node: isinstance(node, special),
    )


def step_factors(model: Model) -> Model:
    """Return a tree like the model: what the step of each leaf is multiplied by."""
    return jax.tree.map(
        lambda node: node.step_factors() if isinstance(node, Kernel) else 1.0,
        model,
        is_leaf=lambda node: isinstance(node, Kernel),
    )


def projected(model: Model) -> Model:
    """Return the model with every bounded hyper-parameter inside its bounds."""
    return jax.tree.map(
        lambda node: node.projected() if isinstance(node, Kernel) else node,
        model,
        is_leaf=lambda node: isinstance(node, Kernel),
    )
