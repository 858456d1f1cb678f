"""The interface of a weight model: where the weights of a network come from.

A weight model (1) draws its latent quantities from standard normals, (2) returns the layers for that draw and given
inputs, without forming weights where the algebra allows it, (3) returns explicit weights on request, and (4) returns
its KL. The network, the likelihood, the ELBO, training and prediction use nothing else.
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
        """Return the layers at the given inputs; `rows` holds the normals of each row."""

    @abc.abstractmethod
    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the explicit weights of every layer: [I, J], or [B, I, J] if they depend on the input."""

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KL of variables whose prior depends on drawn quantities; it is added to the model's KL."""
        return {}

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest relative jitter that the factorisations of this draw needed."""
        return jnp.zeros(())

    def output_prior(self) -> OutputPrior:
        """Return the prior of the output weights given this draw, if they are integrated out and not drawn."""
        raise NotImplementedError(f"output_prior: expected an integrated output layer; {type(self).__name__} draws it.")

    def aux_inputs(self, x: Float[Array, "B D"]) -> Float[Array, "B E"]:
        """Return the inputs of the input kernel of an integrated output layer."""
        raise NotImplementedError(f"aux_inputs: expected an integrated output layer; {type(self).__name__} draws it.")

    def outputs(self, network: Network, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> Float[Array, "B K"]:
        """Return the network's outputs at the given inputs."""
        return network(self.at(x, rows), x)


class PreparedWeights(eqx.Module):
    """A weight model with everything computed that does not depend on a draw."""

    @abc.abstractmethod
    def draw(self, normals: StandardNormals) -> WeightDraw:
        """Return one draw."""

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest relative jitter that a factorisation needed; 0 if nothing is factored."""
        return jnp.zeros(())


class WeightModel(eqx.Module):
    """Where the weights of a network come from."""

    @abc.abstractmethod
    def sizes(self) -> NormalCounts:
        """Return how many standard normals a draw needs."""

    @abc.abstractmethod
    def prepared(self) -> PreparedWeights:
        """Return the model with everything computed that all draws share."""

    @abc.abstractmethod
    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return KL[posterior || prior] as named parts, one per group of variables."""

    def kl_of_points(self) -> dict[str, Float[Array, ""]]:
        """Return those parts of the KL that are the cost of hyper-parameters as points."""
        return {}

    @property
    def start_jitter(self) -> float:
        """The relative jitter with which factorisations start; 0 if nothing is factored."""
        return 0.0

    def for_prediction(self) -> "WeightModel":
        """Return the model for prediction: the same posterior, in a form whose draws are coherent over rows."""
        return self

    @property
    def couples_rows(self) -> bool:
        """Whether the rows of one call are drawn jointly, so that a row depends on the others."""
        return False


M = TypeVar("M", bound=WeightModel)


def switched(model: M, **statics: object) -> M:
    """Return a copy with some fields replaced, without the checks of `__init__`: leaves may be stacked models."""
    made = object.__new__(type(model))
    for field in dataclasses.fields(model):
        object.__setattr__(made, field.name, statics.get(field.name, getattr(model, field.name)))
    return made
