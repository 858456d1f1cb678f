"""Prediction with an integrated output layer: a mixture, over few draws of what is below, of Gaussian processes.

Given a draw of the layers below, the functions are a Gaussian process with known moments, so a handful of draws does
what hundreds of drawn functions did. What each draw has learned from the data (`ConditionedGP`) is computed once and
kept while the model lives; a row then costs a few products of matrices. With Gaussian noise every answer is that of a
mixture of Gaussians; other likelihoods are asked at values of f drawn from the marginals. Whole functions are drawn
coherently by Matheron's rule, at a cost linear in the rows.
"""

import dataclasses
import weakref
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

from metaprior.compilation import as_float64, compiled, in_float64
from metaprior.likelihoods import Gaussian, Likelihood
from metaprior.model import Model
from metaprior.numerics import small_cholesky
from metaprior.output_layer import ConditionedGP, FunctionGP
from metaprior.predictive.draws import CHUNK_ROWS, FunctionDraws, Predictive
from metaprior.random import StandardNormals, draw_shared_normals
from metaprior.types import Leaf

#: Nodes of every draw's Gaussian that the entropy of several outputs is the mean over.
NUM_NODES = 16
#: Functions that one draw of what is below stands for.
FUNCTIONS_PER_DRAW = 8
#: Functions drawn at once, and how many fitted models' posteriors are kept.
FUNCTIONS_AT_ONCE, MOST_KEPT = 8, 4


class IntegratedDraws(FunctionDraws):
    """The posterior of a model with an integrated output layer at given rows.

    `num_draws` functions stand for `num_draws / 8` draws of what is below, whose key is the fit's own; another `key`
    decides the functions alone.
    """

    whole = rowwise = stacked = False

    def __init__(
        self, model: Model, draw_key: np.ndarray, num_below: int, key: np.ndarray, num_draws: int, x: np.ndarray
    ):
        """Keep what is needed; nothing is computed yet."""
        self.model, self.key, self.num_draws = model, key, num_draws
        self.draw_key, self.num_below = draw_key, num_below
        self.x = np.asarray(x, np.float64)

    @property
    def posterior(self) -> ConditionedGP:
        """What every draw of the layers below has learned, along a leading axis."""
        return posterior_of(self.model, self.draw_key, self.num_below)[0]

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of every function, [S, 1, ...]: that of the draw below that the function belongs to."""
        below = posterior_of(self.model, self.draw_key, self.num_below)[1]
        turn = (first_of(self.key) + np.arange(self.num_draws)) % self.num_below

        def with_axes(leaf: Leaf) -> np.ndarray:
            own = np.asarray(leaf)[turn][:, None]
            return own[..., None] if own.ndim == 2 else own

        return jax.tree.map(with_axes, below)

    def moments(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield rows with the mean [S, rows, K] and the outputs' covariance [S, rows, K, K] of every draw below."""
        for rows, padded in self._padded():
            with in_float64():
                mean, covariance = (np.asarray(part) for part in _moments(self.posterior, jnp.asarray(padded)))
            # out of the block: while whoever asked looks at them, float64 is not on
            size = rows.stop - rows.start
            yield rows, mean[:, :size], covariance[:, :size]

    def components(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield rows, and for every draw below the mean and variance of f, [S, rows, K], and the noise, [S, 1, K]."""
        below: Any = posterior_of(self.model, self.draw_key, self.num_below)[1]
        noise = np.exp(np.asarray(below.log_noise, np.float64))[:, None]
        for rows, mean, covariance in self.moments():
            yield rows, mean, np.maximum(np.diagonal(covariance, axis1=2, axis2=3), 0), noise

    def joint_components(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the same with the covariance of the outputs in place of their variances."""
        below: Any = posterior_of(self.model, self.draw_key, self.num_below)[1]
        noise = np.exp(np.asarray(below.log_noise, np.float64))[:, None]
        for rows, mean, covariance in self.moments():
            yield rows, mean, covariance, noise

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and values of f drawn from every row's own marginal, [S, rows, K]; all rows share the normals."""
        for rows, padded in self._padded():
            with in_float64():
                normals = jnp.asarray(self._normals())
                f = np.asarray(_marginal_draws(self.posterior, jnp.asarray(padded), normals, self.num_draws))
            yield rows, f[:, : rows.stop - rows.start]

    def _normals(self) -> np.ndarray:
        """Return normals for the values of f, [S below, values of each, K]: a lattice, more even than chance."""
        num_outputs = len(self.model.network.weight_layers[-1].outputs)
        each = -(-self.num_draws // self.num_below)
        size = 1 << (each * self.num_below - 1).bit_length()
        seed = np.random.default_rng(np.asarray(self.key))
        normals = ndtri(np.clip(qmc.Sobol(num_outputs, seed=seed).random(size), 1e-9, 1 - 1e-9))
        return np.swapaxes(normals[: each * self.num_below].reshape(each, self.num_below, num_outputs), 0, 1)

    def coherent(self) -> "CoherentDraws":
        """Return functions drawn jointly over the rows."""
        return CoherentDraws(self.model, self.draw_key, self.num_below, self.key, self.num_draws, self.x)

    def _padded(self) -> Iterator[tuple[slice, np.ndarray]]:
        for start in range(0, len(self.x), CHUNK_ROWS):
            rows = self.x[start : start + CHUNK_ROWS]
            padded = np.pad(rows, ((0, CHUNK_ROWS - len(rows)), (0, 0)), mode="edge")
            yield slice(start, start + len(rows)), padded

    def _key(self) -> Key[Array, ""]:
        return jax.random.wrap_key_data(jnp.asarray(self.key), impl="threefry2x32")


class CoherentDraws(IntegratedDraws):
    """Functions of the posterior: a row's values depend on the row alone, and those of all rows belong together."""

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and the functions' values there, [S, rows, K]."""
        for rows, padded in self._padded():
            with in_float64():
                first = first_of(self.key)
                f = np.asarray(_functions(self.posterior, self._key(), jnp.asarray(padded), self.num_draws, first))
            yield rows, f[:, : rows.stop - rows.start]


class GaussianMixture(Predictive):
    """The predictive distribution where the noise is Gaussian: for every draw below, y is Gaussian at each row."""

    _draws: IntegratedDraws

    def _components(self) -> Iterator[tuple[slice, Likelihood, np.ndarray]]:
        """Yield rows, every draw's distribution of y around its mean (function and noise), and the means."""
        for rows, mean, variance, noise in self._draws.components():
            yield rows, Gaussian(0.5 * np.log(variance + noise**2)), mean

    @property
    def num_draws(self) -> int:
        """How many functions `draws` and `sample` give; the other answers need none."""
        return self._draws.num_draws

    @cached_property
    def _noise(self) -> np.ndarray:
        """The noise of every draw, [S, K], standardised."""
        return np.exp(np.asarray(self._likelihood.log_noise, np.float64))[:, 0]  # type: ignore[attr-defined]

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean, between, within = self._reduce(_mixture_moments)
        noise = np.broadcast_to(np.mean(self._noise**2, axis=0), mean.shape)
        epistemic = between + np.maximum(within - noise, 0)
        scale = self._scale
        return (
            self._shaped(self._offset + scale * mean),
            self._shaped(scale**2 * epistemic),
            self._shaped(scale**2 * noise),
        )

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return log p(y_n | x_n), the joint log density of all outputs."""
        if len(self._scale) == 1:
            return super().log_prob(y)
        targets, parts = self._standardised(y, "log_prob"), []
        for rows, mean, covariance in self._joint():
            parts.append(_mixture_log_density(mean, covariance, targets[None, rows])[0])
        return np.concatenate(parts) - float(np.sum(np.log(self._scale)))

    def _joint(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield rows, and for every draw below the mean and the covariance of y, noise and all."""
        for rows, mean, covariance, noise in self._draws.joint_components():
            yield rows, mean, covariance + noise[..., None] ** 2 * np.eye(noise.shape[-1])

    def _joint_entropy(self) -> np.ndarray:
        """Return H[y] of several outputs: -E log p(y) over nodes of every draw's Gaussian."""
        count = len(self._scale)
        nodes = ndtri(qmc.Sobol(count, scramble=True, seed=0).random(NUM_NODES))
        parts = []
        for _, mean, covariance in self._joint():
            factor = np.linalg.cholesky(covariance)
            y = mean + np.einsum("sbkl,rl->rsbk", factor, nodes)
            flat = y.reshape(-1, *mean.shape[1:])
            parts.append(-np.mean(_mixture_log_density(mean, covariance, flat), axis=0))
        return np.concatenate(parts) + float(np.sum(np.log(self._scale)))

    @cached_property
    def _entropies(self) -> tuple[np.ndarray, np.ndarray]:
        total = super()._entropies[0] if len(self._scale) == 1 else self._joint_entropy()
        # H[y | f] = log(2 pi e noise^2) / 2, summed over outputs
        given = np.sum(0.5 * np.log(2 * np.pi * np.e) + np.mean(np.log(self._scale * self._noise), axis=0))
        return total, np.full_like(total, given)


def predictive_of(draws: FunctionDraws, offset: np.ndarray, scale: np.ndarray, *, flat: bool) -> Predictive:
    """Return what draws of functions, or the posterior of an integrated output layer, say in the units of the data."""
    gaussian = isinstance(draws, IntegratedDraws) and isinstance(draws.model.likelihood, Gaussian)
    return (GaussianMixture if gaussian else Predictive)(draws, offset, scale, flat=flat)


def _mixture_log_density(mean: np.ndarray, covariance: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return log (1/S) sum_s N(y; mean_s, covariance_s) for values y [R, B, K], means [S, B, K]: [R, B]."""
    factor = np.linalg.cholesky(covariance)
    inverse = np.linalg.inv(factor)
    constant = np.sum(np.log(np.diagonal(factor, axis1=2, axis2=3)), axis=-1) + 0.5 * mean.shape[-1] * np.log(2 * np.pi)
    each = np.stack(
        [
            -0.5 * np.sum(np.einsum("bkl,rbl->rbk", inverse[s], y - mean[s]) ** 2, axis=-1) - constant[s]
            for s in range(len(mean))
        ]
    )
    return logsumexp(each, axis=0) - np.log(len(mean))


# --- what every draw below has learned -----------------------------------------------------

_KEPT: list[tuple[weakref.ref, bytes, int, tuple[ConditionedGP, Likelihood]]] = []


def posterior_of(model: Model, key: np.ndarray, num_draws: int) -> tuple[ConditionedGP, Likelihood]:
    """Return posterior and likelihood of every draw below, from the last that were computed if they are among them."""
    wanted = (np.asarray(key).tobytes(), num_draws)
    for known in _KEPT:
        if known[0]() is model and known[1:3] == wanted:
            return known[3]
    with in_float64():
        own_key = jax.random.wrap_key_data(jnp.asarray(key), impl="threefry2x32")
        found = _conditioned(as_float64(_predicting(model)), own_key, num_draws)
    _KEPT[:] = [
        *[known for known in _KEPT if known[0]() is not None][-(MOST_KEPT - 1) :],
        (weakref.ref(model), *wanted, found),
    ]
    return found


def _predicting(model: Model) -> Model:
    return dataclasses.replace(model, weights=model.weights.for_prediction())


@compiled
def _conditioned(model: Model, key: Key[Array, ""], num_draws: int) -> tuple[ConditionedGP, Likelihood]:
    normals = draw_shared_normals(key, model.sizes(), num_draws, jnp.float64)

    def one(normals: StandardNormals) -> tuple[ConditionedGP, Likelihood]:
        drawn, own = model.with_hypers(normals)
        assert drawn.output is not None
        gp = FunctionGP.of(drawn.weights.prepared().draw(own), drawn.network)
        return drawn.output.conditioned(gp, drawn.likelihood), drawn.likelihood

    return jax.lax.map(one, normals)


@compiled
def _moments(posterior: ConditionedGP, x: Float[Array, "B D"]) -> tuple[Array, Array]:
    return jax.lax.map(lambda own: own.moments(x), posterior)


@compiled
def _marginal_draws(
    posterior: ConditionedGP, x: Float[Array, "B D"], normals: Float[Array, "S J K"], num_draws: int
) -> Array:
    def one(own: tuple[ConditionedGP, Array]) -> Array:
        mean, covariance = own[0].moments(x)
        return mean + jnp.einsum("bkl,jl->jbk", small_cholesky(covariance), own[1])

    f = jax.lax.map(one, (posterior, normals))
    return jnp.swapaxes(f, 0, 1).reshape(-1, *f.shape[2:])[:num_draws]


def coherent_functions(
    posterior: ConditionedGP, key: Key[Array, ""], x: Float[Array, "B D"], num_draws: int, first: Leaf
) -> Float[Array, "S B K"]:
    """Return functions of the posterior at the rows; the draws below take turns, from the one that `first` names."""
    num_below = jax.tree.leaves(posterior)[0].shape[0]
    one_of_them = jax.tree.map(lambda leaf: leaf[0], posterior)
    normals = jax.random.normal(key, (num_draws, one_of_them.num_normals()), jnp.float64)

    def one(own: tuple[Array, Array]) -> Array:
        number, numbers = own
        return jax.tree.map(lambda leaf: leaf[number % num_below], posterior).function(numbers)(x)

    numbers = jnp.arange(num_draws) + first
    return jax.lax.map(one, (numbers, normals), batch_size=min(FUNCTIONS_AT_ONCE, num_draws))


def first_of(key: np.ndarray) -> np.ndarray:
    """Return the draw below that the first function belongs to: keys spread over all of them."""
    return np.asarray(np.random.default_rng(np.asarray(key)).integers(2**20), np.int32)


_functions = compiled(coherent_functions)


@compiled
def _mixture_moments(components: Gaussian, mean: Float[Array, "S B K"]) -> tuple[Array, Array, Array]:
    return jnp.mean(mean, 0), jnp.var(mean, 0), jnp.mean(components.noise**2, 0)
