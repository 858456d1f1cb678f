"""Fully connected networks of any depth. The bias unit, unit 0 in the paper, is the last unit of its layer here."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.networks.activations import Activation, activation_named
from metaprior.networks.base import Layer, Network, WeightLayer


class Dense(Network):
    """A fully connected network; every layer but the last has a bias unit with activation 1."""

    sizes: tuple[int, ...] = eqx.field(static=True)
    activation: Activation = eqx.field(static=True)

    def __init__(self, sizes: Sequence[int], activation: str | Activation = "tanh") -> None:
        """Take the layer sizes from input to output, and the hidden activation."""
        self.sizes = tuple(int(s) for s in sizes)
        if len(self.sizes) < 2 or min(self.sizes) < 1:
            raise ValueError(f"Dense: sizes must be at least two positive numbers, input to output; got {sizes!r}.")
        self.activation = activation_named(activation)

    @property
    def num_units(self) -> int:
        """The units of all layers, and a bias unit for every layer but the last."""
        return sum(self.sizes) + len(self.sizes) - 1

    @property
    def weight_layers(self) -> tuple[WeightLayer, ...]:
        """The weights between consecutive layers; the bias unit is on the input side only."""
        starts = [0]
        for size in self.sizes[:-1]:
            starts.append(starts[-1] + size + 1)
        return tuple(
            WeightLayer(
                range(starts[l], starts[l] + self.sizes[l] + 1),
                range(starts[l + 1], starts[l + 1] + self.sizes[l + 1]),
            )
            for l in range(len(self.sizes) - 1)
        )

    def __call__(self, layers: Sequence[Layer], x: Float[Array, "B D"]) -> Float[Array, "B K"]:
        """Append the bias unit and apply a layer and the activation, in turn; the last layer has no activation."""
        h = x
        for l, layer in enumerate(layers):
            h = layer(jnp.concatenate([h, jnp.ones((*h.shape[:-1], 1), h.dtype)], axis=-1))
            if l < len(layers) - 1:
                h = self.activation(h)
        return h
