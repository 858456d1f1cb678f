"""Several weight models in one network: some layers come from one, some from another, and some are the sum of both.

The paper's network for images has mean-field weights below and a MetaGP-local last layer. Each part has its own layers
and its own share of the normals, and does not depend on the others. Their KLs add. The weights of a layer that belongs
to two parts are a sum: weights from the GP, plus an independent term for every weight.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TypeVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.networks import Layer
from metaprior.random import NormalCounts, StandardNormals
from metaprior.weight_gp import OutputPrior
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel, switched
from metaprior.weights.metagp import MetaGP

T = TypeVar("T")


class Mixed(WeightModel):
    """Several weight models; `layers` lists the layers of the network that each of them has."""

    parts: tuple[WeightModel, ...]
    layers: tuple[tuple[int, ...], ...] = eqx.field(static=True)

    def sizes(self) -> NormalCounts:
        """Return the sums of the counts of all parts."""
        each = [part.sizes() for part in self.parts]
        return NormalCounts(*(sum(numbers) for numbers in zip(*each, strict=True)))

    def prepared(self) -> "PreparedMixed":
        """Prepare every part."""
        return PreparedMixed(self, [part.prepared() for part in self.parts])

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KLs of all parts; those with the same name are added."""
        total: dict[str, Array] = {}
        for part in self.parts:
            for name, value in part.kl().items():
                total[name] = total[name] + value if name in total else value
        return total

    def kl_of_points(self) -> dict[str, Float[Array, ""]]:
        """Return those of all parts; only one part has an integrated output layer."""
        return {name: value for part in self.parts for name, value in part.kl_of_points().items()}

    def for_prediction(self) -> "Mixed":
        """Return the model with every part in its form for prediction."""
        return switched(self, parts=tuple(part.for_prediction() for part in self.parts))

    @property
    def start_jitter(self) -> float:
        """The largest starting jitter of the parts."""
        return max(part.start_jitter for part in self.parts)

    @property
    def couples_rows(self) -> bool:
        """Whether any part draws rows jointly."""
        return any(part.couples_rows for part in self.parts)


class PreparedMixed(PreparedWeights):
    """A mixed model with every part prepared."""

    model: Mixed
    parts: list[PreparedWeights]

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter of the parts."""
        return jnp.max(jnp.stack([part.jitter for part in self.parts]))

    def draw(self, normals: StandardNormals) -> "MixedDraw":
        """Draw every part from its own share of the normals."""
        shares = shares_of(self.model, normals)
        return MixedDraw(self.model, [part.draw(own) for part, own in zip(self.parts, shares, strict=True)])


class MixedDraw(WeightDraw):
    """A draw of every part."""

    model: Mixed
    draws: list[WeightDraw]

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return the layers of all parts in the order of the network."""
        return [_sum_of_layers(own) for own in self._in_order(lambda draw, own: draw.at(x, own), rows)]

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the weights of all parts in the order of the network."""
        each = self._in_order(lambda draw, own: draw.weights(x, own), rows)
        return [functools.reduce(operator.add, own) for own in each]

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KLs that the draws of the parts add."""
        return {name: value for draw in self.draws for name, value in draw.kl().items()}

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter of the parts."""
        return jnp.max(jnp.stack([draw.jitter for draw in self.draws]))

    def _with_output(self) -> WeightDraw:
        """Return the part whose output layer is integrated."""
        parts = zip(self.draws, self.model.parts, strict=True)
        return next(draw for draw, part in parts if isinstance(part, MetaGP))

    def output_prior(self) -> OutputPrior:
        """Return the prior of the output weights, which belong to the GP part."""
        return self._with_output().output_prior()

    def aux_inputs(self, x: Float[Array, "B D"]) -> Float[Array, "B E"]:
        """Return the inputs of the input kernel of the GP part."""
        return self._with_output().aux_inputs(x)

    def _in_order(self, of: Callable[[WeightDraw, Array], Sequence[T]], rows: Array) -> list[list[T]]:
        """Return, for every layer, the results of the parts that have it."""
        own_rows = _shares(rows, [part.sizes().per_row for part in self.model.parts], axis=1)
        found: dict[int, list[T]] = {}
        for draw, layers, own in zip(self.draws, self.model.layers, own_rows, strict=True):
            for layer, given in zip(layers, of(draw, own), strict=True):
                found.setdefault(layer, []).append(given)
        return [found[layer] for layer in range(len(found))]


def _sum_of_layers(parts: Sequence[Layer]) -> Layer:
    return parts[0] if len(parts) == 1 else lambda h: functools.reduce(operator.add, [part(h) for part in parts])


def metagp_of(weights: WeightModel) -> MetaGP:
    """Return the model itself if it is a MetaGP, or its part that is one."""
    parts = weights.parts if isinstance(weights, Mixed) else (weights,)
    return next(part for part in parts if isinstance(part, MetaGP))


def shares_of(model: Mixed, normals: StandardNormals) -> list[StandardNormals]:
    """Return the normals of every part; those of rows are not split."""
    sizes = [part.sizes() for part in model.parts]
    latents = _shares(normals.latents, [size.latents for size in sizes], axis=0)
    weights = _shares(normals.weights, [size.weights for size in sizes], axis=0)
    spectral = _shares(normals.spectral, [size.spectral for size in sizes], axis=0)
    return [StandardNormals(*own, normals.rows) for own in zip(latents, weights, spectral, strict=True)]


def _shares(numbers: Array, sizes: Sequence[int], axis: int) -> list[Array]:
    return jnp.split(numbers, np.cumsum(sizes)[:-1].tolist(), axis=axis)
