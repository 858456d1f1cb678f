"""Importance weights of a variational posterior: log p(y, x) - log q(x) for draws x of what is below the output layer.

With an integrated output layer x is all that is drawn: hyper-parameters, the latents z, the input projection V, the
values u. log p(y | x) is the regime's inner term: the evidence itself for `exact`, a bound of it for the others. Every
part of x is an affine map of standard normals n, so that log q(x) = log N(n; 0, I) - log |dx / dn|. The mean of the log
weights is the ELBO, and their spread says how far q is from the posterior. `log_density_of_normals` is the same
posterior as a density of n, which a sampler can run on.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.inputs import InputMap
from metaprior.latents import UnitLatents
from metaprior.model import Model
from metaprior.numerics import grid_cross_entropy
from metaprior.output_layer import FunctionGP
from metaprior.output_layer.base import Batch
from metaprior.random import StandardNormals, take
from metaprior.types import Leaf
from metaprior.weight_gp import Anchored, Posterior
from metaprior.weights import MeanField, MetaGP, Mixed, WeightDraw, WeightModel
from metaprior.weights.metagp import MetaGPDraw
from metaprior.weights.mixed import MixedDraw, shares_of


def predicting(model: Model) -> Model:
    """Return the model whose draws do not depend on the rows: that whose log weights are defined."""
    return dataclasses.replace(model, weights=model.weights.for_prediction())


def log_weight(model: Model, normals: StandardNormals, batch: Batch) -> Float[Array, ""]:
    """Return log p(y, x) - log q(x) of one draw x, by a model in its form for prediction."""
    drawn, own = model.with_hypers(normals)
    assert drawn.output is not None
    draw = drawn.weights.prepared().draw(own)
    inner, kl = drawn.output.bound(FunctionGP.of(draw, drawn.network), drawn.likelihood, batch, own.rows)
    total = inner - sum(kl.values(), jnp.zeros(()))
    if model.hypers is None:
        # the price of the points of a local output layer
        total = total - sum(model.weights.kl_of_points().values(), jnp.zeros(()))
    else:
        total = total + model.hypers.log_ratio(dataclasses.replace(model, hypers=None), normals.weights)
    return total + log_ratio(drawn.weights, draw, own)


def log_density_of_normals(model: Model, normals: StandardNormals, batch: Batch) -> Float[Array, ""]:
    """Return the log density of the posterior over the normals, up to a constant: log weight + log N(n; 0, I)."""
    parts = (normals.latents, normals.weights, normals.spectral)
    return log_weight(model, normals, batch) - 0.5 * sum((jnp.sum(part**2) for part in parts), jnp.zeros(()))


def log_ratio(weights: WeightModel, draw: WeightDraw, normals: StandardNormals) -> Float[Array, ""]:
    """Return log p - log q of what a weight model draws below the output layer."""
    if isinstance(weights, Mixed):
        assert isinstance(draw, MixedDraw)
        parts = zip(weights.parts, draw.draws, shares_of(weights, normals), strict=True)
        return sum((log_ratio(*part) for part in parts), jnp.zeros(()))
    if isinstance(weights, MeanField):
        return _of_mean_field(weights, normals.weights)
    if isinstance(weights, MetaGP):
        assert isinstance(draw, MetaGPDraw)
        return _of_metagp(weights, draw, normals)
    raise ValueError(f"importance weights: expected MetaGP or mean-field weights; got {type(weights).__name__}.")


def _of_metagp(model: MetaGP, draw: MetaGPDraw, normals: StandardNormals) -> Float[Array, ""]:
    size_v = model.input_map.num_normals
    total = _of_latents(model.latents, draw.z, normals.latents)
    total = total + _of_projections(model.input_map, draw.projections, normals.weights[:size_v])
    start = size_v
    for g in range(len(model.sparse_gps)):
        total = total + _of_values(model, draw, g, normals.weights[start:])
        start += model.group_sizes(g).weights
    return total


def _of_latents(latents: UnitLatents, z: Float[Array, "U Dz"], normals: Float[Array, " n"]) -> Float[Array, ""]:
    return 0.5 * (jnp.sum(normals**2) - jnp.sum(z**2)) + jnp.sum(jnp.asarray(latents.log_std))


def _of_projections(input_map: InputMap, drawn: list[Array], normals: Float[Array, " n"]) -> Float[Array, ""]:
    logs = sum((jnp.sum(jnp.asarray(s)) for s in input_map.log_stds), jnp.zeros(()))
    return 0.5 * (jnp.sum(normals**2) - sum((jnp.sum(v**2) for v in drawn), jnp.zeros(()))) + logs


def _of_values(model: MetaGP, draw: MetaGPDraw, g: int, normals: Float[Array, " n"]) -> Float[Array, ""]:
    """Return log N(u; 0, K_uu(z)) - log N(u; m, T T') of the anchored values of one GP."""
    sparse_gp, own = model.sparse_gps[g], draw.own[g]
    assert isinstance(sparse_gp, Anchored)
    assert own is not None
    posterior = model.prepared().roots[g]
    assert isinstance(posterior, Posterior)
    log_q = -0.5 * jnp.sum(normals[: sparse_gp.n_inducing] ** 2) - posterior.log_determinant
    if own.inverse_root is not None:
        logs = jnp.sum(jnp.log(jnp.diagonal(own.inverse_root)))
        return logs - 0.5 * jnp.sum((own.inverse_root @ own.values) ** 2) - log_q
    (layer,) = model.group_layers(g)
    z_in, z_out = (draw.z[side.start : side.stop] for side in (layer.inputs, layer.outputs))
    grams = sparse_gp.kernel_in(z_in, z_in), sparse_gp.kernel_out(z_out, z_out)
    values = own.values.reshape(len(z_in), len(z_out))
    noise = jnp.exp(2 * jnp.asarray(model.weight_noise.log_std))
    return -grid_cross_entropy(*grams, noise, values, jnp.zeros_like(values)) - log_q


def _of_mean_field(model: MeanField, normals: Float[Array, " n"]) -> Float[Array, ""]:
    """Return log N(w; 0, scale^2) - log N(w; mean, std^2), summed over the weights."""
    total = jnp.zeros(())
    own = take(normals, *[mean.shape for mean in model.means])
    for mean, log_std, log_scale, n in zip(model.means, model.log_stds, model.prior_logs(), own, strict=True):
        w: Leaf = mean + jnp.exp(log_std) * n
        total = total + jnp.sum(0.5 * (n**2 - (w / jnp.exp(log_scale)) ** 2) + log_std - log_scale)
    return total


def num_numbers(model: Model) -> int:
    """Return how many normals a draw takes."""
    sizes = model.sizes()
    return int(np.sum([sizes.latents, sizes.weights, sizes.spectral]))
