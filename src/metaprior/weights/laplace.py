"""Linearised Laplace: a Gaussian around the MAP weights, and the network as its first-order expansion there.

f(x) = f(x; w*) + J(x) (w - w*), w - w* ~ N(0, (H + tau I)^-1). H = sum_n J_n' Lambda_n J_n is the generalised
Gauss-Newton matrix, Lambda_n the expected curvature of -log p(y | f_n), and tau the precision of the prior. H is stored
as eigenvalues and eigenvectors: of the whole matrix (`full`), of the last layer only (`last_layer`, where the other
weights stay at w*), or of one Kronecker product per layer (`kronecker`, for wide networks): H_l = A_l x G_l / N, with
sums A_l of h h' over the layer's inputs h and G_l of the curvature at its outputs. A draw costs two network passes.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.networks import Layer, Network
from metaprior.random import NormalCounts, StandardNormals, take
from metaprior.types import Leaf
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel
from metaprior.weights.point import product

Weights = tuple[Leaf, ...]


class Curvature(eqx.Module):
    """H in its eigenbasis: one eigenvalue per direction, and the map from coefficients to weights."""

    @abc.abstractmethod
    def eigenvalues(self) -> Float[Array, " W"]:
        """Return the eigenvalues of H."""

    @abc.abstractmethod
    def weights(self, coefficients: Float[Array, " W"]) -> list[Array]:
        """Return the weights of every layer for coefficients in the eigenbasis."""


class DenseCurvature(Curvature):
    """Eigenvalues and eigenvectors of H for the last `len(shapes)` layers; the layers before them stay fixed."""

    values: Float[Leaf, " W"]
    vectors: Float[Leaf, "W W"]
    shapes: tuple[tuple[int, int], ...] = eqx.field(static=True)
    fixed_shapes: tuple[tuple[int, int], ...] = eqx.field(static=True)

    def eigenvalues(self) -> Float[Array, " W"]:
        """Return the stored eigenvalues."""
        return jnp.asarray(self.values)

    def weights(self, coefficients: Float[Array, " W"]) -> list[Array]:
        """Return zeros for the fixed layers, then the weights of the others."""
        free = take(jnp.matmul(self.vectors, coefficients), *self.shapes)
        return [*[jnp.zeros(shape, coefficients.dtype) for shape in self.fixed_shapes], *free]


class KroneckerCurvature(Curvature):
    """H_l = A_l x G_l / N, stored as eigenvalues and eigenvectors of both factors."""

    input_values: tuple[Float[Leaf, " _"], ...]
    input_vectors: tuple[Float[Leaf, "_ _"], ...]
    output_values: tuple[Float[Leaf, " _"], ...]
    output_vectors: tuple[Float[Leaf, "_ _"], ...]

    def eigenvalues(self) -> Float[Array, " W"]:
        """Return the products of the factors' eigenvalues."""
        pairs = zip(self.input_values, self.output_values, strict=True)
        return jnp.concatenate([jnp.outer(a, jnp.asarray(g)).ravel() for a, g in pairs])

    def weights(self, coefficients: Float[Array, " W"]) -> list[Array]:
        """Return U_A C U_G' for every layer."""
        shapes = [(len(a), len(g)) for a, g in zip(self.input_values, self.output_values, strict=True)]
        parts = zip(self.input_vectors, take(coefficients, *shapes), self.output_vectors, strict=True)
        return [jnp.asarray(u) @ c @ v.T for u, c, v in parts]


class Laplace(WeightModel):
    """The Gaussian around w*. It is built after training, and has no ELBO of its own."""

    values: Weights
    curvature: Curvature
    log_precision: Float[Leaf, ""]
    log_noise_factor: Float[Leaf, ""]

    def sizes(self) -> NormalCounts:
        """Return one normal per direction."""
        return NormalCounts(weights=self.curvature.eigenvalues().shape[0])

    def prepared(self) -> "PreparedLaplace":
        """Return the model with the standard deviation of every direction."""
        curvature = self.curvature.eigenvalues() * jnp.exp(-2 * self.log_noise_factor)
        return PreparedLaplace(self, 1 / jnp.sqrt(curvature + jnp.exp(self.log_precision)))

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return no parts, because the posterior does not come from an ELBO."""
        return {}


class PreparedLaplace(PreparedWeights):
    """A Laplace posterior with its standard deviations."""

    model: Laplace
    stds: Float[Array, " W"]

    def draw(self, normals: StandardNormals) -> "LinearisedDraw":
        """Draw w - w*."""
        return LinearisedDraw(self.model.values, self.model.curvature.weights(self.stds * normals.weights))


class LinearisedDraw(WeightDraw):
    """The first-order expansion of the network along one direction of its weights."""

    values: Weights
    change: list[Array]

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return the layers with weights w. `outputs` does not use them, because it is linear in w - w*."""
        return [product(w) for w in self.weights(x, rows)]

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return w."""
        return [change + value for value, change in zip(self.values, self.change, strict=True)]

    def outputs(self, network: Network, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> Float[Array, "B K"]:
        """Return f(x; w*) + J(x) (w - w*)."""
        values = tuple(jnp.asarray(v) for v in self.values)
        f, change = jax.jvp(lambda ws: network([product(w) for w in ws], x), (values,), (tuple(self.change),))
        return f + change
