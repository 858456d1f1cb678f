"""Functions drawn from a fitted model at given rows: what a predictive distribution mixes.

The draws are fixed once (their key is part of the fit) and shared by all rows, so a row's prediction depends on the
row alone. Rows go through in chunks of two sizes, so that memory stays bounded and nothing recompiles for another
number of rows. Everything runs in float64.
"""

import abc
import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metaprior.compilation import as_float64, compiled, in_float64
from metaprior.likelihoods import Likelihood
from metaprior.model import Model
from metaprior.predictive.trials import KEY, check_count, outputs_of, traced
from metaprior.random import StandardNormals, draw_row_normals, draw_shared_normals
from metaprior.types import Leaf
from metaprior.weights import PreparedWeights

#: Rows of a chunk, and rows of one where there are many.
CHUNK_ROWS, MANY_ROWS = 256, 4096
#: Normals of rows that a chunk takes at the most: an eighth of a gigabyte.
MOST_NORMALS = 1 << 24
#: How many draws are computed at once.
DRAWS_AT_ONCE = 8


class GaussianChunk(NamedTuple):
    """Functions that are Gaussian at every row of a chunk, and the standard deviation of their observation noise."""

    rows: slice
    mean: np.ndarray  # [S, rows, K]
    covariance: np.ndarray  # [S, rows, K, K], of the outputs at one row
    noise: np.ndarray  # [S, 1, K]

    @property
    def variance(self) -> np.ndarray:
        """The variance of every output, [S, rows, K]."""
        return np.maximum(np.diagonal(self.covariance, axis1=2, axis2=3), 0)


D = TypeVar("D", bound="FunctionDraws")


class JointGaussian(NamedTuple):
    """Functions that are jointly Gaussian over all rows, and the standard deviation of their observation noise."""

    mean: np.ndarray  # [N, K]
    covariance: np.ndarray  # [K, N, K, N]
    noise: np.ndarray  # [K]


class FunctionDraws(abc.ABC):
    """Draws of a model's functions at given rows, in standardised units."""

    #: The rows, standardised.
    x: np.ndarray
    #: How many functions are drawn.
    num_draws: int
    #: Whether the rows are drawn together, and so in one chunk.
    whole: bool

    @property
    @abc.abstractmethod
    def likelihood(self) -> Likelihood:
        """The likelihood of every draw, its numbers with the axes [S, 1, ...] of draws and rows before their own."""

    @abc.abstractmethod
    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and their draws [S, rows, K], one chunk at a time."""

    @abc.abstractmethod
    def coherent(self) -> "FunctionDraws":
        """Return draws whose values at all rows belong to one function."""

    @abc.abstractmethod
    def num_outputs(self) -> int:
        """Return how many outputs y has, by a trial of the computation; raise an error if the model does not fit.

        Nothing is computed, and no value of the model is looked at (`trials.py`).
        """

    @property
    @abc.abstractmethod
    def has_gaussians(self) -> bool:
        """Whether the functions are a mixture of Gaussians with Gaussian noise, whose moments `gaussians` yields."""

    @abc.abstractmethod
    def gaussians(self) -> Iterator[GaussianChunk]:
        """Yield the components of the mixture, one chunk of rows at a time; only where `has_gaussians`."""

    def joint_gaussians(self) -> Iterator[JointGaussian]:
        """Yield the components of the mixture one by one, each over all rows; only where `has_gaussians`."""
        raise NotImplementedError("joint_gaussians: expected functions with moments in closed form; got drawn ones.")

    def at_rows(self: D, rows: np.ndarray) -> D:
        """Return the same functions at some of the rows."""
        part = copy.copy(self)
        part._keep_rows(rows)
        return part

    def _keep_rows(self, rows: np.ndarray) -> None:
        self.x = self.x[rows]

    def padded_chunks(self, *, many: int = CHUNK_ROWS, few: int = CHUNK_ROWS) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and their inputs: chunks of `many` rows, then of `few`, the last padded to its size."""
        if self.whole:
            yield slice(0, len(self.x)), self.x
            return
        start = 0
        while start < len(self.x):
            size = many if len(self.x) - start >= many else few
            rows = self.x[start : start + size]
            yield slice(start, start + len(rows)), np.pad(rows, ((0, size - len(rows)), (0, 0)), mode="edge")
            start += size


def _rows_at_once(num_normals: int) -> int:
    """Return the rows of a chunk: fewer, by powers of two, where every row takes many normals of its own."""
    rows = CHUNK_ROWS
    while rows > 1 and rows * num_normals > MOST_NORMALS:
        rows //= 2
    return rows


def chunk_size(num_rows: int) -> int:
    """Return the size of the chunk that so many rows are in."""
    return CHUNK_ROWS if num_rows <= CHUNK_ROWS else num_rows


@final
class NetworkDraws(FunctionDraws):
    """Draws of the network's output functions at given rows.

    `num_draws` draws from `key`; rows are standardised inputs. With `joint`, rows that a model couples (`full` with an
    input kernel) are drawn together, coherently; otherwise each row is drawn for itself. A `stacked` model is
    `num_draws` models in one, along a leading axis of all its numbers (an ensemble, a sampler's states): each is a
    draw.
    """

    def __init__(
        self,
        model: Model,
        key: np.ndarray,
        num_draws: int,
        x: np.ndarray,
        *,
        joint: bool = False,
        stacked: bool = False,
    ) -> None:
        """Keep what is needed; nothing is computed yet."""
        self.model = dataclasses.replace(model, weights=model.weights.for_prediction())
        self.key, self.num_draws, self.x, self.stacked = key, num_draws, np.asarray(x, np.float64), stacked
        self.rowwise = model.weights.couples_rows and not joint
        self.whole = model.weights.couples_rows and joint

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of every draw, [S, 1, ...]."""

        def with_axes(leaf: Leaf) -> np.ndarray:
            own = np.asarray(leaf)[:, None] if self.stacked else np.asarray(leaf)[None, None]
            own = own[..., None] if own.ndim == 2 else own
            return np.broadcast_to(own, (self.num_draws, *own.shape[1:]))

        return jax.tree.map(with_axes, self.model.likelihood)

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and their draws [S, rows, K]."""
        most = _rows_at_once(self.num_draws * self.model.weights.sizes().per_row)
        for rows, padded in self.padded_chunks(many=most, few=most):
            with in_float64():
                model = as_float64(self.model)
                key = jax.random.wrap_key_data(jnp.asarray(self.key), impl="threefry2x32")
                f = np.asarray(_functions(model, key, jnp.asarray(padded), self.num_draws, self.rowwise, self.stacked))
            yield rows, f[:, : rows.stop - rows.start]

    def num_outputs(self) -> int:
        """Return how many outputs y has, by a trial of the draws at one row."""
        sizes = self.model.weights.sizes()
        check_count(self.num_draws * sum(sizes), "normals")
        one_row = self.x[:1]
        f = traced(_trial, self.model, KEY, one_row, self.num_draws, self.rowwise, self.stacked)
        if f.shape[:-1] != (self.num_draws, 1):
            raise ValueError(f"expected {self.num_draws} functions at one row; the model gives the shape {f.shape}")
        return outputs_of(self.likelihood, f)

    def coherent(self) -> "NetworkDraws":
        """Return these draws: the weights of each are the same at all rows."""
        return self

    @property
    def has_gaussians(self) -> bool:
        """No: every draw is one function."""
        return False

    def gaussians(self) -> Iterator[GaussianChunk]:
        """Refuse: there are none."""
        raise NotImplementedError("gaussians: the functions of drawn weights have no moments in closed form.")


@final
class JoinedDraws(FunctionDraws):
    """The draws of several models at the same rows, those of one model after those of the other."""

    def __init__(self, parts: Sequence[FunctionDraws]) -> None:
        """Take draws at the same rows; nothing is computed yet."""
        self.parts, self.x, self.whole = list(parts), parts[0].x, parts[0].whole
        self.num_draws = sum(part.num_draws for part in parts)

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of every draw, [S, 1, ...]."""
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *[part.likelihood for part in self.parts])

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and the draws of all models."""
        for together in zip(*[part.chunks() for part in self.parts], strict=True):
            yield together[0][0], np.concatenate([f for _, f in together])

    def joint_gaussians(self) -> Iterator[JointGaussian]:
        """Yield the components of one model after those of the other."""
        for part in self.parts:
            yield from part.joint_gaussians()

    def _keep_rows(self, rows: np.ndarray) -> None:
        self.parts = [part.at_rows(rows) for part in self.parts]
        self.x = self.x[rows]

    def num_outputs(self) -> int:
        """Return how many outputs the models have, which must be the same for all."""
        (found,) = {part.num_outputs() for part in self.parts}
        return found

    def coherent(self) -> "JoinedDraws":
        """Return the functions of all models, each drawn jointly over the rows."""
        return JoinedDraws([part.coherent() for part in self.parts])

    @property
    def has_gaussians(self) -> bool:
        """Whether all models have them."""
        return all(part.has_gaussians for part in self.parts)

    def gaussians(self) -> Iterator[GaussianChunk]:
        """Yield the components of all models."""
        for together in zip(*[part.gaussians() for part in self.parts], strict=True):
            yield GaussianChunk(
                together[0].rows,
                np.concatenate([own.mean for own in together]),
                np.concatenate([own.covariance for own in together]),
                np.concatenate([own.noise for own in together]),
            )


def joint_functions(
    model: Model, key: Key[Array, ""], x: Float[Array, "B D"], num_draws: int, rowwise: bool, stacked: bool
) -> Float[Array, "S B K"]:
    """Return the draws' values at the inputs, from one weight model for all of them or one per draw."""
    sizes, members, prepare = model.weights.sizes(), *_preparation(model, stacked)
    shared_key, row_key = jax.random.split(key)
    normals = draw_shared_normals(shared_key, sizes, num_draws, x.dtype)
    rows = draw_row_normals(row_key, x, num_draws, sizes.per_row)

    def one(parts: tuple[Any, StandardNormals, Array]) -> Array:
        member, shared, own = parts
        draw = prepare(member).draw(shared)

        def call(x: Array, own: Array) -> Array:
            return draw.outputs(model.network, x, own)

        if not rowwise:
            return call(x, own)
        return jax.vmap(lambda row, own_row: call(row[None], own_row[None])[0])(x, own)

    at_once = max(d for d in range(1, DRAWS_AT_ONCE + 1) if num_draws % d == 0)
    return jax.lax.map(one, (members, normals, rows), batch_size=at_once)


def _preparation(model: Model, stacked: bool) -> tuple[Any, Callable[[Any], PreparedWeights]]:
    """Return what is mapped over the draws, and how each draw's prepared weights follow from its own part of it."""
    if stacked:
        return model.weights, lambda member: member.prepared()
    prepared = model.weights.prepared()
    return None, lambda _: prepared


_functions = compiled(joint_functions)


@partial(jax.jit, static_argnums=(3, 4, 5))
def _trial(model: Model, key: Array, x: Array, num_draws: int, rowwise: bool, stacked: bool) -> Array:
    wrapped = jax.random.wrap_key_data(key, impl="threefry2x32")
    return joint_functions(model, wrapped, x, num_draws, rowwise, stacked)
