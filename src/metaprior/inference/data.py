"""The rows a run sees: padded to sizes that are met often, weighted, whole or in batches."""

from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key

from metaprior.inference.elbo import Batch
from metaprior.random import random_rows
from metaprior.types import Leaf

#: Rows from which the ladder of sizes is finer.
FINE_FROM = 128


class Data(eqx.Module):
    """Rows padded to a size that is met often; `num_rows` of them, with their weights, are real."""

    x: Float[Leaf, "N D"]
    y: Float[Leaf, "N P"]
    weight: Float[Leaf, " N"]
    num_rows: Int[Leaf, ""]


class StepConfig(NamedTuple):
    """How many rows and draws a step takes: `batch_size` None is all rows; S of z, J of w for each."""

    batch_size: int | None = None
    num_latent: int = 4
    num_weight: int = 1


def padded_size(num_rows: int) -> int:
    """Return the next size of a coarse ladder, so that growing data seldom recompile.

    It has two sizes per octave, and eight from 128 rows on: a step costs more there than a compilation, and rows that
    weigh nothing cost as much as others.
    """
    if num_rows > FINE_FROM:
        width = 2 ** ((num_rows - 1).bit_length() - 4)
        return -(-num_rows // width) * width
    size = 16
    while size < num_rows:
        size = size * 3 // 2 if (size & (size - 1)) == 0 else size * 4 // 3
    return size


def make_data(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, dtype: type = np.float32) -> Data:
    """Pad rows to the ladder and give the data their type."""
    num_rows = x.shape[0]
    weight = np.ones(num_rows) if weight is None else weight
    data = Data(np.asarray(x, dtype), np.asarray(y, dtype), np.asarray(weight, dtype), np.asarray(num_rows, np.int32))
    return padded(data, padded_size(num_rows))


def padded(data: Data, size: int) -> Data:
    """Return the data with rows that weigh nothing up to a size."""
    extra = size - data.x.shape[0]
    return Data(
        np.pad(data.x, ((0, extra), (0, 0))),
        np.pad(data.y, ((0, extra), (0, 0))),
        np.pad(data.weight, (0, extra)),
        data.num_rows,
    )


def takes_all_rows(data: Data, batch_size: int | None) -> bool:
    """Return whether a step sees all rows."""
    return batch_size is None or batch_size >= data.x.shape[0]


def choose_batch(key: Key[Array, ""], data: Data, batch_size: int | None) -> Batch:
    """Return all rows, or rows drawn with replacement and weighted so that sums are unbiased for the whole."""
    if batch_size is None or takes_all_rows(data, batch_size):
        return Batch(data.x, data.y, data.weight)
    rows = random_rows(jax.random.fold_in(key, 1), batch_size, data.num_rows)
    scale = data.num_rows.astype(data.weight.dtype) / batch_size
    return Batch(data.x[rows], data.y[rows], data.weight[rows] * scale)
