"""The parts of the prior variance of the outputs at the fitted values: from the input kernel, from every hidden unit.

With an integrated output layer the outputs are a Gaussian process given all that is below it. Its covariance at the
rows is centred, as an offset of all rows says nothing of X: V = tr(C K C) / N, where C takes the mean over rows away.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.compilation import as_float64, compiled, in_float64
from metaprior.inference.importance import predicting
from metaprior.model import Model
from metaprior.output_layer import FunctionGP
from metaprior.random import StandardNormals
from metaprior.types import Leaf
from metaprior.weight_gp import OutputPrior, OutputRows

#: Rows that the variance is computed over.
MOST_ROWS = 300


class PriorVariance(NamedTuple):
    """V of the prior, V without the input kernel, V of the bias unit alone, and V of every hidden unit alone."""

    total: float
    without_kernel: float
    bias_only: float
    each_unit: np.ndarray


def prior_variance(model: Model, x_unit: np.ndarray) -> PriorVariance:
    """Return the parts of the prior variance at the means of the variational posterior."""
    rows = x_unit[np.linspace(0, len(x_unit) - 1, min(MOST_ROWS, len(x_unit))).round().astype(int)]
    with in_float64():
        parts = _parts(as_float64(model), jnp.asarray(rows, jnp.float64))
        total, without, bias, each = (np.asarray(part) for part in parts)
    return PriorVariance(float(total), float(without), float(bias), each)


@compiled
def _parts(model: Model, x: Float[Array, "B D"]) -> tuple[Array, Array, Array, Array]:
    gp = at_the_mean(model)
    rows, prior = gp.rows(x), gp.prior
    size = rows.phi.shape[1]
    return (
        _centred(prior, rows),
        _centred(_without_kernel(prior), rows),
        _centred(prior, _only(rows, jnp.arange(size) == size - 1)),
        jax.lax.map(lambda unit: _centred(prior, _only(rows, jnp.arange(size) == unit)), jnp.arange(size - 1)),
    )


def at_the_mean(model: Model) -> FunctionGP:
    """Return the Gaussian process of the outputs where everything below is at its mean."""
    model = predicting(model)
    sizes = model.sizes()
    latents, weights, spectral = (jnp.zeros(size) for size in (sizes.latents, sizes.weights, sizes.spectral))
    drawn, own = model.with_hypers(StandardNormals(latents, weights, spectral, jnp.zeros((0, 0))))
    return FunctionGP.of(drawn.weights.prepared().draw(own), drawn.network)


def _only(rows: OutputRows, units: Leaf) -> OutputRows:
    return rows._replace(phi=rows.phi * units)


def _without_kernel(prior: OutputPrior) -> OutputPrior:
    return OutputPrior(
        prior.gram_in, prior.gram_out, prior.std_in, prior.std_out, prior.scale, None, None, prior.jitter
    )


def _centred(prior: OutputPrior, rows: OutputRows) -> Array:
    """Return tr(C K C) / N = mean of the variances minus the mean of all covariances, for an output of variance 1."""
    signal, white = prior.parts(rows, rows)
    own_signal, own_white = prior.own_parts(rows)
    return jnp.mean(own_signal + own_white) - jnp.mean(signal + white)
