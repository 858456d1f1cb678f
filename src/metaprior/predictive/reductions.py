"""Mixtures of likelihoods reduced to what they say of a row: moments, densities, quantiles, scores, entropies.

A component of a mixture is a likelihood p(y | f) at the values f of one function; S of them with equal weights are the
predictive distribution. Components come in chunks of rows. `reduce_chunks` pads each chunk to one of few sizes, so that
a compiled reduction serves all of them, and joins what is left of each row. (`gaussian_mixture` has what needs no
compiling where the components are Gaussian.)
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.compilation import as_float64, compiled, in_float64
from metaprior.likelihoods import Categorical, Likelihood, OutputLikelihood, invert
from metaprior.predictive.draws import chunk_size
from metaprior.types import Leaf


class ComponentChunk(NamedTuple):
    """The components at a chunk of rows: f is [S, rows, K], the likelihood's numbers are [S, 1 or rows, ...]."""

    rows: slice
    likelihood: Likelihood
    f: np.ndarray


def reduce_chunks(
    chunks: Iterable[ComponentChunk],
    reduction: Callable[..., Array | tuple[Array, ...]],
    *per_row: np.ndarray,
) -> list[np.ndarray]:
    """Apply a compiled function of (likelihood, f, the rows' arrays) to every chunk, and join the rows again."""
    parts: list[tuple[np.ndarray, ...]] = []
    for rows, likelihood, f in chunks:
        num_rows, extra = f.shape[1], chunk_size(f.shape[1]) - f.shape[1]
        padded = np.pad(f, ((0, 0), (0, extra), (0, 0)), mode="edge")
        own = [np.pad(a[rows], [(0, extra), *[(0, 0)] * (a.ndim - 1)], mode="edge") for a in per_row]
        of_rows = jax.tree.map(lambda leaf, n=num_rows, e=extra: _padded_rows(leaf, n, e), likelihood)
        with in_float64():
            found = reduction(as_float64(of_rows), jnp.asarray(padded), *map(jnp.asarray, own))
            arrays = found if isinstance(found, tuple) else (found,)
            parts.append(tuple(np.asarray(array)[:num_rows] for array in arrays))
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _padded_rows(leaf: np.ndarray, num_rows: int, extra: int) -> np.ndarray:
    """Return numbers of a likelihood, [S, rows or 1, ...], with the padding of the rows where they have any."""
    if leaf.ndim < 2 or leaf.shape[1] != num_rows or leaf.shape[1] == 1:
        return leaf
    return np.pad(leaf, [(0, 0), (0, extra), *[(0, 0)] * (leaf.ndim - 2)], mode="edge")


@compiled
def moments(likelihood: Likelihood, f: Float[Array, "S B K"]) -> tuple[Array, Array, Array]:
    """Return the mean of y, the variance of E[y | f] and the mean of var[y | f]."""
    mean = likelihood.mean(f)
    return jnp.mean(mean, 0), jnp.var(mean, 0), jnp.mean(likelihood.variance(f), 0)


@compiled
def log_prob(likelihood: Likelihood, f: Float[Array, "S B K"], y: Float[Array, "B P"]) -> Float[Array, " B"]:
    """Return the log density of targets."""
    each = likelihood.log_prob(f, jnp.broadcast_to(y, (f.shape[0], *y.shape)))
    return jax.scipy.special.logsumexp(each, axis=0) - jnp.log(f.shape[0])


@compiled
def cdf(likelihood: OutputLikelihood, f: Float[Array, "S B F"], y: Float[Array, "B K"]) -> Float[Array, "B K"]:
    """Return P(Y <= y), one output at a time."""
    return jnp.mean(likelihood.cdf(f, y[None]), 0)


@compiled
def crps(likelihood: OutputLikelihood, f: Float[Array, "S B F"], y: Float[Array, "B K"]) -> Float[Array, "B K"]:
    """Return the continuous ranked probability score, one output at a time."""
    return likelihood.mixture_crps(f, y)


@compiled
def quantile(likelihood: OutputLikelihood, f: Float[Array, "S B F"], level: Leaf) -> Float[Array, "B K"]:
    """Invert the mixture's distribution function between the components' own quantiles, which enclose it."""
    each = likelihood.from_uniform(f, jnp.full((likelihood.num_outputs(f),), level, f.dtype))
    low, high = jnp.min(each, 0), jnp.max(each, 0)
    low, high = low - 1e-9 * (1 + jnp.abs(low)), high + 1e-9 * (1 + jnp.abs(high))
    found = invert(lambda y: jnp.mean(likelihood.cdf(f, y[None]), 0), jnp.full_like(low, level), low, high)
    return likelihood.attained(found)


@compiled
def entropies(likelihood: Likelihood, f: Float[Array, "S B K"]) -> tuple[Array, Array]:
    """Return H[y] = -E_f E_y|f log p(y) and E_f H[y | f], by nodes of y, one component at a time."""
    if isinstance(likelihood, Categorical):
        p = likelihood.mean(f)
        return _categorical_entropy(jnp.mean(p, 0)), jnp.mean(_categorical_entropy(p), 0)

    wider = jax.tree.map(lambda leaf: leaf[:, None], likelihood)  # [S, 1, 1, ...]: draws, nodes, rows

    def of_draw(numbered: tuple[Likelihood, Array, Array]) -> tuple[Array, Array]:
        of_s, f_s, turn = numbered
        y, weight = of_s.nodes(f_s, turn)  # [R, B, P], [R, B]
        own = of_s.log_prob(jnp.broadcast_to(f_s, (y.shape[0], *f_s.shape)), y)
        wide = (f.shape[0], *y.shape[:-1])
        each = wider.log_prob(
            jnp.broadcast_to(f[:, None], (*wide, f.shape[-1])), jnp.broadcast_to(y, (*wide, y.shape[-1]))
        )
        mixed = jax.scipy.special.logsumexp(each, axis=0) - jnp.log(f.shape[0])
        return -jnp.sum(weight * mixed, 0), -jnp.sum(weight * own, 0)

    total, own = jax.lax.map(of_draw, (likelihood, f, jnp.arange(f.shape[0], dtype=f.dtype)))
    return jnp.mean(total, 0), jnp.mean(own, 0)


def _categorical_entropy(p: Float[Array, "*b C"]) -> Float[Array, "*b"]:
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.where(p > 0, p, 1)), 0), axis=-1)
