"""The posterior of a local output layer through fewer rows than the data have, when these say as much.

A row that is asked about costs the square of the rows that the posterior goes through. Most of them repeat what others
say. So rows are taken one by one, each the one whose value is the least known given those before it (a Cholesky factor
with pivots), until no value is uncertain by more than `TOLERANCE` of the noise's variance. Of what is taken off the
prior's variance, |E k(x)|^2, only the directions that matter as much are kept. With M rows and R directions a row costs
M (I + R) for I units, where N rows would cost N (I + N). Means and standard deviations differ from the exact ones by
about a thousandth of a standard deviation at the most.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metaprior.compilation import compiled
from metaprior.model import Model
from metaprior.output_layer import ConditionedGP, Exact, FunctionGP, InducedRows, InducingRows
from metaprior.output_layer.base import Batch, noise_of
from metaprior.random import StandardNormals, draw_shared_normals
from metaprior.weights import metagp_of

#: The largest variance of a value that the chosen rows leave, in variances of the noise.
TOLERANCE = 1e-5
#: Rows from which on fewer are looked for, and the part of them that it is worth stopping at.
LEAST_ROWS, MOST_PART = 128, 0.6
#: The relative jitter of the chosen rows' covariance.
JITTER = 1e-12


def through_fewer_rows(model: Model, key: Key[Array, ""], num_draws: int) -> Model:
    """Return the model with an output layer that is known through fewer rows; itself where that says less.

    `key` and `num_draws` are those of the draws that the prediction takes.
    """
    candidates, data = _candidates(model)
    if candidates is None or data is None or len(candidates.x) < LEAST_ROWS:
        return model
    gram = np.asarray(_relative_covariance(model, key, num_draws, candidates))
    most = int(MOST_PART * np.sum(np.asarray(candidates.weight) > 0))
    chosen = least_known(gram, TOLERANCE, most)
    if len(chosen) >= most:
        return model
    points = np.asarray(candidates.x)[chosen]
    output = InducingRows(jnp.asarray(points), None, JITTER).with_rows(data)
    return dataclasses.replace(model, output=output)


def _candidates(model: Model) -> tuple[Batch | None, Batch | None]:
    """Return the rows to choose from, and the data; None where a layer's posterior goes through no rows."""
    output = model.output
    if not metagp_of(model.weights).has_local_output:
        return None, None  # the weights themselves say all
    if isinstance(output, Exact) and output.rows is not None:
        return output.rows.value, output.rows.value
    if isinstance(output, InducingRows) and output.rows is not None:
        points = jnp.asarray(output.points)
        return Batch(points, jnp.zeros((len(points), 1)), jnp.ones(len(points))), output.rows.value
    return None, None


def through_fewer_directions(posteriors: ConditionedGP, noise: Float[np.ndarray, "S K"]) -> ConditionedGP:
    """Return posteriors along a leading axis with the directions of E that matter at the rows they go through.

    Those are the leading left singular vectors of E K, for the covariance K of the rows. What is left out makes
    variances larger, by at most the tolerance at any of the rows.
    """
    if not isinstance(posteriors, InducedRows):
        return posteriors
    roots = np.linalg.inv(np.asarray(posteriors.inverse_root))
    explained = np.asarray(posteriors.explained)
    at_rows = explained @ (roots @ np.swapaxes(roots, 1, 2))
    vectors = np.linalg.eigh(at_rows @ np.swapaxes(at_rows, 1, 2))[1][:, :, ::-1]
    turned = np.swapaxes(vectors, 1, 2)
    squares = (turned @ at_rows) ** 2
    left_out = np.cumsum(squares[:, ::-1], axis=1)[:, ::-1].max(axis=2) / np.min(noise**2, axis=1)[:, None]
    needed = int(np.max(np.sum(left_out > TOLERANCE, axis=1)))
    kept = (turned @ explained)[:, : size_above(needed)]
    return eqx.tree_at(lambda own: own.explained, posteriors, jnp.asarray(kept))


@compiled
def _relative_covariance(model: Model, key: Key[Array, ""], num_draws: int, rows: Batch) -> Float[Array, "N N"]:
    """Return the covariance of f at the rows over the noise's variance: summed over outputs, the mean over draws.

    What a set of rows leaves unexplained is concave in the covariance, so what it leaves of this one is no less than
    the mean over draws of what it leaves of each.
    """
    normals = draw_shared_normals(key, model.sizes(), num_draws, jnp.float64)

    def add(total: Array, normals: StandardNormals) -> tuple[Array, None]:
        drawn, own = model.with_hypers(normals)
        gp = FunctionGP.of(drawn.weights.prepared().draw(own), drawn.network)
        at, num_outputs = gp.rows(rows.x), gp.prior.num_outputs
        covariance = gp.prior.covariance(at, at).reshape(num_outputs, len(total), num_outputs, -1)
        each = jnp.einsum("onom,o->nm", covariance, noise_of(drawn.likelihood) ** -2)
        return total + each / num_draws, None

    total = jax.lax.scan(add, jnp.zeros((len(rows.x), len(rows.x)), jnp.float64), normals)[0]
    real = rows.weight > 0
    return total * real * real[:, None]


def least_known(covariance: Float[np.ndarray, "N N"], tolerance: float, most: int) -> np.ndarray:
    """Return rows, each the one with the largest variance given those before, until none is above the tolerance.

    As many as a ladder of sizes has, so that few programs are compiled, and `most` at the most. Cost N M^2 for M rows.
    """
    left, chosen = np.diagonal(covariance).copy(), np.empty(most, int)
    columns = np.empty((most, len(left)))
    stop = most
    for place in range(most):
        row = int(np.argmax(left))
        if left[row] <= tolerance:
            stop = min(stop, size_above(place), most)
        if place >= stop or left[row] <= 0:
            return chosen[:place]
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
