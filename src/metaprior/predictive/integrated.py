"""Functions of a model with an integrated output layer: Gaussian processes, one for each of few draws of what is below.

Given a draw of the layers below, the functions are a Gaussian process with known moments, so a handful of draws does
what hundreds of drawn functions did. What each draw has learned from the data (`ConditionedGP`) is computed once and
kept while the model lives; a row then costs a few products of matrices. With Gaussian noise the moments are all that a
prediction needs; other likelihoods see values of f drawn from the marginals. Whole functions are drawn coherently by
Matheron's rule, at a cost linear in the rows.
"""

import dataclasses
import weakref
from collections.abc import Iterator
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from scipy.special import ndtri
from scipy.stats import qmc

from metaprior.compilation import as_float64, compiled, compiled_to_run_fast, in_float64
from metaprior.likelihoods import Gaussian, Likelihood
from metaprior.model import Model
from metaprior.numerics import small_cholesky
from metaprior.output_layer import ConditionedGP, FunctionGP
from metaprior.predictive.draws import MANY_ROWS, FunctionDraws, GaussianChunk, JointGaussian
from metaprior.predictive.fewer_rows import through_fewer_directions, through_fewer_rows
from metaprior.predictive.stacked import StackedPosteriors
from metaprior.predictive.trials import KEY, check_count, num_numbers, outputs_of, traced
from metaprior.random import StandardNormals, draw_shared_normals
from metaprior.types import Leaf

#: Functions that one draw of what is below stands for.
FUNCTIONS_PER_DRAW = 8
#: Functions drawn at once, and how many fitted models' posteriors are kept.
FUNCTIONS_AT_ONCE, MOST_KEPT = 8, 4
#: Rows at the two sides of a block of a joint covariance.
BLOCK_ROWS = 1024


@final
class IntegratedDraws(FunctionDraws):
    """The posterior of a model with an integrated output layer at given rows.

    `num_draws` functions stand for `num_draws / 8` draws of what is below, whose key is the fit's own; another `key`
    decides the functions alone.
    """

    whole = False

    def __init__(
        self, model: Model, draw_key: np.ndarray, num_below: int, key: np.ndarray, num_draws: int, x: np.ndarray
    ) -> None:
        """Keep what is needed; nothing is computed yet."""
        self.model, self.key, self.num_draws = model, key, num_draws
        self.draw_key, self.num_below = draw_key, num_below
        self.x = np.asarray(x, np.float64)

    @property
    def posterior(self) -> StackedPosteriors:
        """What every draw of the layers below has learned, along a leading axis."""
        return posterior_of(self.model, self.draw_key, self.num_below)[0]

    @property
    def likelihood_below(self) -> Likelihood:
        """The likelihood of every draw of the layers below, along a leading axis."""
        return posterior_of(self.model, self.draw_key, self.num_below)[1]

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of every function, [S, 1, ...]: that of the draw below that the function belongs to."""
        turn = (first_of(self.key) + np.arange(self.num_draws)) % self.num_below

        def with_axes(leaf: Leaf) -> np.ndarray:
            own = np.asarray(leaf)[turn][:, None]
            return own[..., None] if own.ndim == 2 else own

        return jax.tree.map(with_axes, self.likelihood_below)

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and values of f drawn from every row's own marginal, [S, rows, K]; all rows share the normals."""
        for rows, padded in self.padded_chunks():
            with in_float64():
                normals = jnp.asarray(self._normals())
                f = np.asarray(_marginal_draws(self.posterior, jnp.asarray(padded), normals, self.num_draws))
            yield rows, f[:, : rows.stop - rows.start]

    @property
    def _num_functions(self) -> int:
        return len(self.model.network.weight_layers[-1].outputs)

    def num_outputs(self) -> int:
        """Return how many outputs y has, by a trial of one draw below at one row."""
        check_count(self.num_below * sum(self.model.sizes()), "normals")
        conditioned, likelihood, (mean, covariance) = traced(_trial, _predicting(self.model), KEY, self.x[:1])
        check_count(self.num_below * num_numbers(conditioned), "numbers")
        if mean.shape != (1, self._num_functions) or covariance.shape != (*mean.shape, *mean.shape[1:]):
            raise ValueError(f"the moments of the functions have the shapes {mean.shape} and {covariance.shape}")
        return outputs_of(likelihood, mean)

    def _normals(self) -> np.ndarray:
        """Return normals for the values of f, [S below, values of each, K]: a lattice, more even than chance."""
        num_outputs = self._num_functions
        each = -(-self.num_draws // self.num_below)
        size = 1 << (each * self.num_below - 1).bit_length()
        seed = np.random.default_rng(np.asarray(self.key))
        normals = ndtri(np.clip(qmc.Sobol(num_outputs, seed=seed).random(size), 1e-9, 1 - 1e-9))
        return np.swapaxes(normals[: each * self.num_below].reshape(each, self.num_below, num_outputs), 0, 1)

    def coherent(self) -> "CoherentDraws":
        """Return functions drawn jointly over the rows."""
        return CoherentDraws(self)

    @property
    def has_gaussians(self) -> bool:
        """Whether the noise is Gaussian: the functions are."""
        return isinstance(self.model.likelihood, Gaussian)

    def _noise_below(self) -> np.ndarray:
        """Return the observation noise of every draw below, [S, K]."""
        likelihood = self.likelihood_below
        assert isinstance(likelihood, Gaussian)
        return np.exp(np.asarray(likelihood.log_noise, np.float64))

    def gaussians(self) -> Iterator[GaussianChunk]:
        """Yield the moments of the functions of every draw below, and its noise."""
        noise = self._noise_below()[:, None]
        for rows, padded in self.padded_chunks(many=MANY_ROWS):
            with in_float64():
                mean, covariance = (np.asarray(part) for part in _moments(self.posterior, jnp.asarray(padded)))
            # out of the block: while the caller looks at them, float64 is not on
            size = rows.stop - rows.start
            yield GaussianChunk(rows, mean[:, :size], covariance[:, :size], noise)

    def joint_gaussians(self) -> Iterator[JointGaussian]:
        """Yield the functions of one draw below after the other, over all rows."""
        means = np.concatenate([chunk.mean for chunk in self.gaussians()], axis=1)
        for number, noise in enumerate(self._noise_below()):
            yield JointGaussian(means[number], self._covariance(number), noise)

    def _covariance(self, number: int) -> np.ndarray:
        """Return the covariance of the functions of one draw below over all rows, [K, N, K, N], block by block."""
        size, posterior = self._num_functions, self.posterior
        found = np.empty((size, len(self.x), size, len(self.x)))
        blocks = list(self.padded_chunks(many=BLOCK_ROWS))
        for place, (a, rows_a) in enumerate(blocks):
            for b, rows_b in blocks[: place + 1]:
                with in_float64():
                    arguments = (jnp.asarray(number), jnp.asarray(rows_a), jnp.asarray(rows_b))
                    block = np.asarray(_block(posterior, *arguments)).reshape(size, len(rows_a), size, len(rows_b))
                block = block[:, : a.stop - a.start, :, : b.stop - b.start]
                found[:, a, :, b] = block
                found[:, b, :, a] = block.transpose(2, 3, 0, 1)
        return found


@final
class CoherentDraws(FunctionDraws):
    """Functions of the posterior: a row's values depend on the row alone, and those of all rows belong together."""

    whole = False

    def __init__(self, posterior: IntegratedDraws) -> None:
        """Take the posterior whose functions are drawn."""
        self.model, self.key, self.num_draws, self.x = posterior.model, posterior.key, posterior.num_draws, posterior.x
        self._integrated = posterior

    @property
    def posterior(self) -> StackedPosteriors:
        """What every draw of the layers below has learned, along a leading axis."""
        return self._integrated.posterior

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood of every function, [S, 1, ...]."""
        return self._integrated.likelihood

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and the functions' values there, [S, rows, K]."""
        posterior, first = self.posterior, first_of(self.key)
        for rows, padded in self.padded_chunks():
            with in_float64():
                key = jax.random.wrap_key_data(jnp.asarray(self.key), impl="threefry2x32")
                f = np.asarray(_functions(posterior, key, jnp.asarray(padded), self.num_draws, first))
            yield rows, f[:, : rows.stop - rows.start]

    def num_outputs(self) -> int:
        """Return how many outputs y has, as the posterior says."""
        return self._integrated.num_outputs()

    def coherent(self) -> "CoherentDraws":
        """Return these draws: they are coherent."""
        return self

    @property
    def has_gaussians(self) -> bool:
        """No: every draw is one function."""
        return False

    def gaussians(self) -> Iterator[GaussianChunk]:
        """Refuse: there are none."""
        raise NotImplementedError("gaussians: expected the posterior of an integrated output layer; got its functions.")


# --- what every draw below has learned -----------------------------------------------------

_KEPT: list[tuple[weakref.ref[Model], bytes, int, tuple[StackedPosteriors, Likelihood]]] = []


def posterior_of(model: Model, key: np.ndarray, num_draws: int) -> tuple[StackedPosteriors, Likelihood]:
    """Return posterior and likelihood of every draw below, from the last that were computed if they are among them."""
    wanted = (np.asarray(key).tobytes(), num_draws)
    for known in _KEPT:
        if known[0]() is model and known[1:3] == wanted:
            return known[3]
    with in_float64():
        own_key = jax.random.wrap_key_data(jnp.asarray(key), impl="threefry2x32")
        predicting = through_fewer_rows(as_float64(_predicting(model)), own_key, num_draws)
        posteriors, likelihood = _conditioned(predicting, own_key, num_draws)
        if isinstance(likelihood, Gaussian):
            posteriors = through_fewer_directions(posteriors, np.exp(np.asarray(likelihood.log_noise)))
        found = StackedPosteriors.of(posteriors), likelihood
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

    return jax.lax.map(lambda own: _given(model, own), normals)


def _given(model: Model, normals: StandardNormals) -> tuple[ConditionedGP, Likelihood]:
    """Return the posterior of the functions, and the likelihood, given one draw of what is below."""
    drawn, own = model.with_hypers(normals)
    assert drawn.output is not None
    gp = FunctionGP.of(drawn.weights.prepared().draw(own), drawn.network)
    return drawn.output.conditioned(gp, drawn.likelihood), drawn.likelihood


@jax.jit
def _trial(model: Model, key: Array, x: Array) -> tuple[ConditionedGP, Likelihood, tuple[Array, Array]]:
    wrapped = jax.random.wrap_key_data(key, impl="threefry2x32")
    normals = draw_shared_normals(wrapped, model.sizes(), 1, jnp.float64)
    conditioned, likelihood = _given(model, jax.tree.map(lambda leaf: leaf[0], normals))
    return conditioned, likelihood, conditioned.moments(x)


@compiled_to_run_fast
def _moments(posterior: StackedPosteriors, x: Float[Array, "B D"]) -> tuple[Array, Array]:
    return posterior.each(lambda own: own.moments(x))


@compiled_to_run_fast
def _block(
    posterior: StackedPosteriors, number: Int[Array, ""], a: Float[Array, "A D"], b: Float[Array, "B D"]
) -> Float[Array, "KA KB"]:
    own = posterior.one(number)
    return own.covariance_of(own.gp.rows(a), own.gp.rows(b))


@compiled
def _marginal_draws(
    posterior: StackedPosteriors, x: Float[Array, "B D"], normals: Float[Array, "S J K"], num_draws: int
) -> Array:
    def one(posterior: ConditionedGP, normals: Array) -> Array:
        mean, covariance = posterior.moments(x)
        return mean + jnp.einsum("bkl,jl->jbk", small_cholesky(covariance), normals)

    f = posterior.each_with(one, normals)
    return jnp.swapaxes(f, 0, 1).reshape(-1, *f.shape[2:])[:num_draws]


def coherent_functions(
    posterior: StackedPosteriors, key: Key[Array, ""], x: Float[Array, "B D"], num_draws: int, first: Leaf
) -> Float[Array, "S B K"]:
    """Return functions of the posterior at the rows; the draws below take turns, from the one that `first` names."""
    normals = jax.random.normal(key, (num_draws, posterior.one(0).num_normals()), jnp.float64)

    def one(own: tuple[Array, Array]) -> Array:
        number, numbers = own
        return posterior.one(number % posterior.count).function(numbers)(x)

    numbers = jnp.arange(num_draws) + first
    return jax.lax.map(one, (numbers, normals), batch_size=min(FUNCTIONS_AT_ONCE, num_draws))


def first_of(key: np.ndarray) -> np.ndarray:
    """Return the draw below that the first function belongs to: keys spread over all of them."""
    return np.asarray(np.random.default_rng(np.asarray(key)).integers(2**20), np.int32)


_functions = compiled(coherent_functions)
