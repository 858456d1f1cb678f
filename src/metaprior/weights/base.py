"""What a weight model is: where the weights of a network come from.

It can (1) draw its latent quantities from standard normals, (2) given that draw and inputs, hand out the layers,
forming no weights where the algebra allows it, (3) hand out explicit weights where somebody asks, (4) say its KL.
The network, the likelihood, the ELBO, training and prediction know nothing else of it.
"""

import abc
import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.networks import Layer, Network
from metaprior.random import NormalCounts, StandardNormals
from metaprior.weight_gp import OutputPrior


class WeightDraw(eqx.Module):
    """One draw of a weight model."""

    @abc.abstractmethod
    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> Sequence[Layer]:
        """Return the layers at the given inputs; `rows` are the rows' own normals."""

    @abc.abstractmethod
    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return explicit weights, layer by layer: [I, J], or [B, I, J] where they depend on the input."""

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return what this draw adds to the KL: a prior that depends on drawn quantities does."""
        return {}

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest relative jitter that the draw's own factorisations took."""
        return jnp.zeros(())

    def output_prior(self) -> OutputPrior:
        """Return the prior of the output weights given this draw, where these are integrated and not drawn."""
        raise NotImplementedError(f"{type(self).__name__} draws the output layer.")

    def aux_inputs(self, x: Float[Array, "B D"]) -> Float[Array, "B E"]:
        """Return what the input kernel of an integrated output layer sees."""
        raise NotImplementedError(f"{type(self).__name__} draws the output layer.")

    def outputs(self, network: Network, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> Float[Array, "B K"]:
        """Return the network's outputs at the given inputs."""
        return network(self.at(x, rows), x)


class PreparedWeights(eqx.Module):
    """A weight model with all that does not depend on a draw computed once."""

    @abc.abstractmethod
    def draw(self, normals: StandardNormals) -> WeightDraw:
        """Return one draw."""

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest relative jitter a factorisation took: 0 where there is none."""
        return jnp.zeros(())


class WeightModel(eqx.Module):
    """Where the weights of a network come from."""

    @abc.abstractmethod
    def sizes(self) -> NormalCounts:
        """Return how many standard normals a draw takes."""

    @abc.abstractmethod
    def prepared(self) -> PreparedWeights:
        """Compute once what all draws share."""

    @abc.abstractmethod
    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KL from prior to posterior, one named part a group of variables."""

    @property
    def start_jitter(self) -> float:
        """The relative jitter that its factorisations start from: 0 where nothing is factored."""
        return 0.0

    def for_prediction(self) -> "WeightModel":
        """Return the model that predictions draw from: the same posterior, in the form that is coherent over rows."""
        return self

    @property
    def couples_rows(self) -> bool:
        """Whether a row's draw depends on the other rows of the call (their joint draw is coherent)."""
        return False


M = TypeVar("M", bound=WeightModel)


def switched(model: M, **statics: object) -> M:
    """Return the model with other static fields, its numbers as they are (they may be those of many models)."""
    made = object.__new__(type(model))
    for field in dataclasses.fields(model):
        object.__setattr__(made, field.name, statics.get(field.name, getattr(model, field.name)))
    return made
