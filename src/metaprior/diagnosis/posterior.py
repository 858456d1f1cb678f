"""The posterior of what lies below the output layer, at the training rows: its draws, log weights and functions."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.compilation import as_float64, compiled, in_float64
from metaprior.diagnosis.subject import Subject
from metaprior.inference.importance import log_weight, predicting
from metaprior.model import Model
from metaprior.output_layer import Exact, FunctionGP, InducingRows
from metaprior.output_layer.base import Batch
from metaprior.random import StandardNormals, draw_normals, make_key

#: The largest number of targets up to which the evidence of inducing rows is that of all rows.
MOST_EXACT = 1200


class Target(NamedTuple):
    """A model in float64 in the form for prediction, the rows that it was fitted to, and whether p(y | x) is exact."""

    model: Model
    batch: Batch
    is_exact: bool


def target_of(subject: Subject) -> Target | str:
    """Return the model and its training rows, or why they are not known."""
    if not subject.is_metagp:
        return f"{type(subject.estimator).__name__} is not a MetaGP."
    model = subject.model
    if model.output is None:
        return "all weights are drawn: with an integrated output layer there would be fewer draws to check."
    batch = _training_batch(subject)
    if batch is None:
        return "the model keeps no training rows; give all of them as X and y, with rows='training'."
    size = int(np.sum(np.asarray(batch.weight) > 0)) * np.shape(batch.y)[1]
    if isinstance(model.output, InducingRows) and size <= MOST_EXACT:
        model = dataclasses.replace(model, output=Exact())
    return Target(predicting(model), batch, isinstance(model.output, Exact))


def _training_batch(subject: Subject) -> Batch | None:
    rows = subject.training
    if rows is not None:
        return Batch(rows.x, rows.y, np.ones(len(rows.x)))
    if not subject.is_training:
        return None
    y = subject.estimator._fitted_targets().standardised(subject.labels)
    return Batch(subject.x_unit, np.asarray(y, np.float64), np.ones(len(subject)))


def draws_of(target: Target, num_draws: int, seed: int) -> StandardNormals:
    """Return the normals of draws of q."""
    with in_float64():
        normals = draw_normals(
            make_key(seed), target.model.sizes(), target.batch.x.shape[0], num_draws, dtype=jnp.float64
        )
        return jax.tree.map(np.asarray, normals)


def log_weights(target: Target, normals: StandardNormals) -> np.ndarray:
    """Return the log weights of draws."""
    with in_float64():
        model, batch = as_float64(target.model), as_float64(target.batch)
        return np.asarray(_log_weights(model, batch, jax.tree.map(jnp.asarray, normals)))


@compiled
def _log_weights(model: Model, batch: Batch, normals: StandardNormals) -> Float[Array, " S"]:
    return jax.lax.map(lambda own: log_weight(model, own, batch), normals)


class FunctionMoments(NamedTuple):
    """The mean and the variance of the functions at rows, [draws, rows, outputs]."""

    mean: np.ndarray
    variance: np.ndarray


def function_moments(target: Target, normals: StandardNormals, x_unit: np.ndarray) -> FunctionMoments:
    """Return the moments of the functions given each draw; the regime must be exact."""
    with in_float64():
        model, batch = as_float64(target.model), as_float64(target.batch)
        own = jax.tree.map(jnp.asarray, normals)
        mean, variance = _moments(model, batch, own, jnp.asarray(x_unit, jnp.float64))
        return FunctionMoments(np.asarray(mean), np.asarray(variance))


@compiled
def _moments(model: Model, batch: Batch, normals: StandardNormals, x: Float[Array, "B D"]) -> tuple[Array, Array]:
    assert model.output is not None
    knowing = eqx.tree_at(lambda m: m.output, model, model.output.with_rows(batch))

    def one(own: StandardNormals) -> tuple[Array, Array]:
        drawn, rest = knowing.with_hypers(own)
        gp = FunctionGP.of(drawn.weights.prepared().draw(rest), drawn.network)
        mean, covariance = drawn.output.conditioned(gp, drawn.likelihood).moments(x)
        return mean, jnp.diagonal(covariance, axis1=1, axis2=2)

    return jax.lax.map(one, normals)
