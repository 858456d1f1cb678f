"""The interface of an architecture: which units each weight connects, and how activations are computed.

A network is a pure function of its layers. It numbers its units, states which units every layer of weights connects
(`WeightLayer`), and maps activations through the layers that it is given. It does not know where the weights come
from. A convolution would be one more file, with channels (and offsets) as units.
"""

import abc
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

#: Maps activations [B, ..., inputs] to pre-activations [B, ..., outputs].
Layer = Callable[[Array], Array]


class WeightLayer(NamedTuple):
    """One layer of weights, from the units `inputs` (the last is the bias unit) to the units `outputs`."""

    inputs: range
    outputs: range
    positions: int = 1

    @property
    def num_weights(self) -> int:
        """The number of weights, including biases."""
        return len(self.inputs) * len(self.outputs)


class Network(eqx.Module):
    """An architecture: numbered units, layers of weights, and the function that they define."""

    @property
    @abc.abstractmethod
    def num_units(self) -> int:
        """The number of units, including bias units."""

    @property
    @abc.abstractmethod
    def weight_layers(self) -> tuple[WeightLayer, ...]:
        """The layers of weights, from the input to the output."""

    @abc.abstractmethod
    def __call__(self, layers: Sequence[Layer], x: Float[Array, "B D"]) -> Float[Array, "B K"]:
        """Return the outputs of the network for given layers and inputs."""
