"""All random numbers of a step, drawn in one place.

Every draw of a weight model is a deterministic function of standard normals. They have four parts: the normals of the
unit latents (shared by several weight draws), of the weights, of the random features (never tempered), and of each row
of the data. One call draws them all, because each separate call costs more than half a second of compile time.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_batching import sequential_vmap
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, Key

from metaprior.types import Leaf


def make_key(seed: int) -> Key[Array, ""]:
    """Return a key of the counter-based generator, which needs half the compile time of the default one."""
    return jax.random.key(seed, impl="rbg")


def step_key(key: Key[Array, ""], step: Int[Array, ""]) -> Key[Array, ""]:
    """Return the key of a step, by adding to the high word of the key's 64-bit counter.

    A step draws far fewer than 2^32 blocks, so the streams never overlap. `fold_in` would do the same with a hash that
    takes longer than a whole step of a small network.
    """
    offset = jnp.zeros(4, jnp.uint32).at[3].set(step.astype(jnp.uint32))
    return jax.random.wrap_key_data(jax.random.key_data(key) + offset, impl="rbg")


class NormalCounts(NamedTuple):
    """The numbers of standard normals that one draw of a model needs."""

    latents: int = 0
    weights: int = 0
    spectral: int = 0
    per_row: int = 0


class StandardNormals(eqx.Module):
    """The standard normals of one draw (or of several, along a leading axis)."""

    latents: Float[Array, "*s U"]
    weights: Float[Array, "*s W"]
    spectral: Float[Array, "*s F"]
    rows: Float[Array, "*s B R"]

    def tempered(self, temperature: Float[Array, ""] | float) -> "StandardNormals":
        """Return the normals scaled: 0 gives the mean function, 1 the model. Frequencies are not scaled."""
        return StandardNormals(
            self.latents * temperature, self.weights * temperature, self.spectral, self.rows * temperature
        )


def draw_normals(
    key: Key[Array, ""],
    sizes: NormalCounts,
    num_rows: int,
    num_latent: int,
    num_weight: int = 1,
    dtype: DTypeLike = jnp.float32,
) -> StandardNormals:
    """Draw the normals of `num_latent * num_weight` draws in one call; each `num_weight` of them share latents."""
    total = num_latent * num_weight
    each = sizes.weights + sizes.spectral + num_rows * sizes.per_row
    flat = _normals(key, num_latent * sizes.latents + total * each, dtype)
    latents = flat[: num_latent * sizes.latents].reshape(num_latent, sizes.latents)
    rest = flat[num_latent * sizes.latents :].reshape(total, each)
    split = sizes.weights + sizes.spectral
    return StandardNormals(
        jnp.repeat(latents, num_weight, axis=0),
        rest[:, : sizes.weights],
        rest[:, sizes.weights : split],
        rest[:, split:].reshape(total, num_rows, sizes.per_row),
    )


def _normals(key: Key[Array, ""], size: int, dtype: DTypeLike) -> Float[Array, " n"]:
    """Return standard normals that are written to memory once.

    XLA's CPU backend would otherwise fuse the expensive inverse error function into every computation that reads them,
    and evaluate it again for each broadcast element, which takes a third of a step. It does not fuse the result of a
    loop. This loop runs once, which the compiler cannot know.
    """

    def draw(key: Array) -> Array:
        once = 1 + (jax.lax.population_count(jax.random.key_data(key).ravel()[0]) > 32).astype(jnp.int32)
        empty = jnp.zeros(size, dtype)
        return jax.lax.fori_loop(0, once, lambda _, __: jax.random.normal(key, (size,), dtype), empty)

    return _each_by_itself(draw, key)


def random_rows(key: Key[Array, ""], size: int, num_rows: Int[Leaf, ""]) -> Int[Array, " n"]:
    """Return row numbers, drawn with replacement."""
    return _each_by_itself(lambda key, num_rows: jax.random.randint(key, (size,), 0, num_rows), key, num_rows)


def _each_by_itself(draw: Callable[..., Array], key: Key[Array, ""], *args: Leaf) -> Array:
    """Return draw(key, ...) such that every key gives the same numbers under vmap as by itself.

    Without this, a batch of keys of the counter-based generator would draw all numbers from its first key.
    """
    kind = jax.random.key_impl(key)
    alone = sequential_vmap(lambda words, *args: draw(jax.random.wrap_key_data(words, impl=kind), *args))
    return alone(jax.random.key_data(key), *args)


def draw_shared_normals(key: Key[Array, ""], sizes: NormalCounts, num_draws: int, dtype: DTypeLike) -> StandardNormals:
    """Draw the normals that all rows share; the normals of each row are left empty."""
    return draw_normals(key, sizes._replace(per_row=0), 0, num_draws, dtype=dtype)


def draw_row_normals(
    key: Key[Array, ""], rows: Float[Array, "B D"], num_draws: int, per_row: int
) -> Float[Array, "S B R"]:
    """Draw the normals of each row from the content of the row, so that its position does not matter."""
    if per_row == 0:
        return jnp.zeros((num_draws, rows.shape[0], 0), rows.dtype)
    # Negative zero counts as zero.
    words = jax.lax.bitcast_convert_type(jnp.where(rows == 0, 0, rows).astype(jnp.float32), jnp.uint32)
    # Under vmap the counter-based generator uses one key for the whole batch; this generator does not.
    key = jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl="threefry2x32")

    def of_row(word: Array) -> Array:
        row_key = jax.lax.fori_loop(0, word.shape[0], lambda d, k: jax.random.fold_in(k, word[d]), key)
        return jax.random.normal(row_key, (num_draws, per_row), rows.dtype)

    return jnp.moveaxis(jax.vmap(of_row)(words), 0, 1)


def take(flat: Float[Array, " n"], *shapes: tuple[int, ...]) -> list[Array]:
    """Split a flat vector of normals into arrays of the given shapes, which must use all of it."""
    sizes = [math.prod(shape) for shape in shapes]
    if sum(sizes) != flat.shape[0]:
        raise ValueError(f"take: expected shapes that use {flat.shape[0]} normals; got {shapes}, for {sum(sizes)}.")
    parts = jnp.split(flat, np.cumsum(sizes)[:-1].tolist()) if sizes else []
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
