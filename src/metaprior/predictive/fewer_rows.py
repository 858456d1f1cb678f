"""The posterior of a local output layer through fewer rows than the data have, when these say as much.

A row that is asked about costs the square of the rows that the posterior goes through: `chosen_rows` finds those that
say as much as all. Of what is taken off the prior's variance, |E k(x)|^2, only the directions that matter as much are
kept. With M rows and R directions a row costs M (I + R) for I units, where N rows would cost N (I + N). Means and
standard deviations differ from the exact ones by about a thousandth of a standard deviation, or two, at the most.
"""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metaprior.chosen_rows import chosen_rows, size_above
from metaprior.model import Model
from metaprior.output_layer import ConditionedGP, Exact, InducedRows, InducingRows
from metaprior.output_layer.base import Batch
from metaprior.weights import metagp_of

#: The largest variance of a value that the chosen rows leave, in variances of the noise.
TOLERANCE = 1e-4
#: Rows from which on fewer are looked for.
LEAST_ROWS = 128
#: The relative jitter of the chosen rows' covariance: they are as nearly dependent as the tolerance says.
JITTER = 1e-12


def through_fewer_rows(model: Model, key: Key[Array, ""], num_draws: int) -> Model:
    """Return the model with an output layer that is known through fewer rows; itself where that says less.

    `key` and `num_draws` are those of the draws that the prediction takes.
    """
    candidates, data = _candidates(model)
    if candidates is None or data is None or len(candidates.x) < LEAST_ROWS:
        return model
    chosen = chosen_rows(model, key, num_draws, candidates, TOLERANCE)
    if chosen is None:
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
    inverse_roots, explained = np.asarray(posteriors.inverse_root), np.asarray(posteriors.explained)
    if not np.all(np.isfinite(inverse_roots)) or np.any(np.diagonal(inverse_roots, axis1=1, axis2=2) == 0):
        return posteriors  # no directions to choose from; a prediction says that its numbers are not finite
    roots = np.linalg.inv(inverse_roots)
    at_rows = explained @ (roots @ np.swapaxes(roots, 1, 2))
    if not np.all(np.isfinite(at_rows)):
        return posteriors
    vectors = np.linalg.eigh(at_rows @ np.swapaxes(at_rows, 1, 2))[1][:, :, ::-1]
    turned = np.swapaxes(vectors, 1, 2)
    squares = (turned @ at_rows) ** 2
    left_out = np.cumsum(squares[:, ::-1], axis=1)[:, ::-1].max(axis=2) / np.min(noise**2, axis=1)[:, None]
    needed = int(np.max(np.sum(left_out > TOLERANCE, axis=1)))
    kept = (turned @ explained)[:, : size_above(needed)]
    return eqx.tree_at(lambda own: own.explained, posteriors, jnp.asarray(kept))
