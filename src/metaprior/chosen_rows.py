"""Rows that say as much as all rows: for a bound, or a posterior, of a local output layer that is as good as exact.

Most rows repeat what others say. Rows are taken one by one, each the one whose value is the least known given those
before it (a Cholesky factor with pivots), until no value is uncertain by more than a small part of the noise's variance
(Burt, Rasmussen and van der Wilk, 2020). What passes through M such rows costs N M^2 where all N would cost N^3.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metaprior.compilation import compiled
from metaprior.model import Model
from metaprior.output_layer import FunctionGP
from metaprior.output_layer.base import Batch, noise_of
from metaprior.random import StandardNormals, draw_shared_normals

#: The largest part of the rows that it is worth choosing.
MOST_PART = 0.6


def chosen_rows(
    model: Model, key: Key[Array, ""], num_draws: int, rows: Batch, tolerance: float, fewest: int = 0
) -> np.ndarray | None:
    """Return the numbers of rows that say as much as all, for draws of the layers below; None if that takes most.

    `tolerance` is in variances of the noise. There are `fewest` at the least.
    """
    covariance = np.asarray(_relative_covariance(model, key, num_draws, rows), np.float64)
    most = int(MOST_PART * np.sum(np.asarray(rows.weight) > 0))
    chosen = least_known(covariance, tolerance, most, fewest)
    return None if len(chosen) >= most else chosen


@compiled
def _relative_covariance(model: Model, key: Key[Array, ""], num_draws: int, rows: Batch) -> Float[Array, "N N"]:
    """Return the covariance of f at the rows over the noise's variance: summed over outputs, the mean over draws.

    What a set of rows leaves unexplained is concave in the covariance, so what it leaves of this one is no less than
    the mean over draws of what it leaves of each.
    """
    x = jnp.asarray(rows.x)
    normals = draw_shared_normals(key, model.sizes(), num_draws, x.dtype)

    def add(total: Array, normals: StandardNormals) -> tuple[Array, None]:
        drawn, own = model.with_hypers(normals)
        gp = FunctionGP.of(drawn.weights.prepared().draw(own), drawn.network)
        at, num_outputs = gp.rows(x), gp.prior.num_outputs
        covariance = gp.prior.covariance(at, at).reshape(num_outputs, len(x), num_outputs, len(x))
        each = jnp.einsum("onom,o->nm", covariance, noise_of(drawn.likelihood) ** -2)
        return total + each / num_draws, None

    total = jax.lax.scan(add, jnp.zeros((len(x), len(x)), x.dtype), normals)[0]
    root = jnp.sqrt(jnp.asarray(rows.weight, x.dtype))  # a row that counts w times has the noise's variance over w
    return total * root * root[:, None]


def least_known(covariance: Float[np.ndarray, "N N"], tolerance: float, most: int, fewest: int = 0) -> np.ndarray:
    """Return rows, each the one with the largest variance given those before, until none is above the tolerance.

    There are as many as a ladder of sizes has, so that few programs are compiled, but at most `most`. Once all values
    are known, any rows follow. Cost N M^2 for M rows.
    """
    left, chosen = np.diagonal(covariance).copy(), np.empty(most, int)
    columns = np.empty((most, len(left)))
    stop = most
    for place in range(most):
        row = int(np.argmax(left))
        if left[row] <= tolerance:
            stop = min(stop, size_above(max(place, fewest)))
        if place >= stop:
            return chosen[:place]
        if left[row] <= 0:
            others = np.setdiff1d(np.arange(len(left)), chosen[:place])
            return np.concatenate([chosen[:place], others])[:stop]
        known = columns[:place]
        columns[place] = (covariance[row] - known[:, row] @ known) / np.sqrt(left[row])
        left = np.maximum(left - columns[place] ** 2, 0)
        left[row] = 0
        chosen[place] = row
    return chosen


def size_above(number: int) -> int:
    """Return the next of 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, ..."""
    step = max(8, 1 << max((number - 1).bit_length() - 3, 0))
    return max(32, -(-number // step) * step)
