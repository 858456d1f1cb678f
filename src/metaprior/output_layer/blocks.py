"""Sums over rows, block by block, so that memory stays bounded for any number of rows."""

from collections.abc import Callable
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from metaprior.output_layer.base import Batch
from metaprior.types import Leaf

#: Rows of a block.
BLOCK = 8192

Sums = TypeVar("Sums", bound=eqx.Module)


def sum_over_blocks(of_block: Callable[[Batch], Sums], batch: Batch) -> Sums:
    """Return the sum of `of_block` over blocks of rows; the derivative computes each block again, so none is kept.

    A block takes every n-th row: where the rows are spread over devices, every device has a part of each block.
    Padding weighs nothing.
    """
    num_rows = batch.x.shape[0]
    num_blocks = -(-num_rows // BLOCK)
    if num_blocks == 1:
        return of_block(batch)
    size = -(-num_rows // num_blocks)

    def cut(a: Leaf) -> Array:
        padded = jnp.pad(jnp.asarray(a), [(0, num_blocks * size - num_rows), *[(0, 0)] * (a.ndim - 1)])
        return jnp.swapaxes(padded.reshape(size, num_blocks, *a.shape[1:]), 0, 1)

    blocks = Batch(cut(batch.x), cut(batch.y), cut(batch.weight))
    shapes = jax.eval_shape(of_block, jax.tree.map(lambda a: a[0], blocks))
    start = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    @jax.checkpoint
    def add(total: Sums, block: Batch) -> tuple[Sums, None]:
        return jax.tree.map(jnp.add, total, of_block(block)), None

    return jax.lax.scan(add, start, blocks)[0]
