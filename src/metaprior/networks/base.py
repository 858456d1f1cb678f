"""What an architecture is: which units each weight joins, and how activations flow.

A network is a pure function of its layers. It numbers its units, says for every layer of weights which units it
joins (`WeightLayer`), and pushes activations through callables that it is handed. It knows nothing of where
weights come from; a convolution is one more file, with channels (and offsets) as units.
"""

import abc
from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

#: Pushes activations [B, ..., inputs] to pre-activations [B, ..., outputs].
Layer = Callable[[Array], Array]


class WeightLayer(NamedTuple):
    """One layer of weights: units `inputs` on one side (the last of them the bias unit), `outputs` on the other."""

    inputs: range
    outputs: range
    positions: int = 1

    @property
    def num_weights(self) -> int:
        """How many weights the layer has."""
        return len(self.inputs) * len(self.outputs)


class Network(eqx.Module):
    """An architecture."""

    @property
    @abc.abstractmethod
    def num_units(self) -> int:
        """How many units there are, bias units among them."""

    @property
    @abc.abstractmethod
    def weight_layers(self) -> tuple[WeightLayer, ...]:
        """The layers of weights, from the input to the output."""

    @abc.abstractmethod
    def __call__(self, layers: Sequence[Layer], x: Float[Array, "B D"]) -> Float[Array, "B K"]:
        """Push inputs through the layers."""
