"""Prediction: what a fitted model says of new inputs, as an object that answers every usual question.

The draws of the model are fixed once (their key is part of the fit) and shared by all rows, so a row's answer depends
on the row alone. Rows go through in chunks of one size, each reduced before the next is drawn: memory stays bounded
for any number of rows, and nothing recompiles. Everything runs in float64.
"""

import dataclasses
from collections.abc import Callable, Iterator
from functools import cached_property, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metaprior.compilation import as_float64, compiled, in_float64
from metaprior.likelihoods import Categorical, Likelihood, OutputLikelihood, invert
from metaprior.model import Model
from metaprior.random import StandardNormals, draw_row_normals, draw_shared_normals
from metaprior.types import Leaf
from metaprior.weights import WeightModel

#: Rows of a chunk, and how many draws are computed at once.
CHUNK_ROWS = 256
DRAWS_AT_ONCE = 8


class FunctionDraws:
    """Draws of the network's output functions at given rows.

    `num_draws` draws from `key`; rows are standardised inputs. With `joint`, rows that a model couples (`full` with an
    input kernel) are drawn together, coherently; otherwise each row is drawn for itself. A `stacked` model is
    `num_draws` models in one, along a leading axis of all its numbers (an ensemble, a sampler's states): a draw each.
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
        """The likelihood of every draw, its numbers with the axes [S, 1, ...] of draws and rows before their own."""

        def with_axes(leaf: Leaf) -> np.ndarray:
            own = np.asarray(leaf)[:, None] if self.stacked else np.asarray(leaf)[None, None]
            own = own[..., None] if own.ndim == 2 else own
            return np.broadcast_to(own, (self.num_draws, *own.shape[1:]))

        return jax.tree.map(with_axes, self.model.likelihood)

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield rows and their draws [S, rows, K], a chunk at a time."""
        size = len(self.x) if self.whole else CHUNK_ROWS
        for start in range(0, len(self.x), size):
            rows = self.x[start : start + size]
            padded = np.pad(rows, ((0, size - len(rows)), (0, 0)), mode="edge")
            with in_float64():
                model = as_float64(self.model)
                key = jax.random.wrap_key_data(jnp.asarray(self.key), impl="threefry2x32")
                f = np.asarray(_functions(model, key, jnp.asarray(padded), self.num_draws, self.rowwise, self.stacked))
            yield slice(start, start + len(rows)), f[:, : len(rows)]

    def coherent(self) -> "FunctionDraws":
        """Return draws whose values at all rows belong together: these are."""
        return self


def joint_functions(
    model: Model, key: Key[Array, ""], x: Float[Array, "B D"], num_draws: int, rowwise: bool, stacked: bool
) -> Float[Array, "S B K"]:
    """Return the draws' values at the inputs, one weight model for all of them or one a draw."""
    sizes = model.weights.sizes()
    members, shared_weights = (model.weights, None) if stacked else (None, model.weights.prepared())
    shared_key, row_key = jax.random.split(key)
    normals = draw_shared_normals(shared_key, sizes, num_draws, x.dtype)
    rows = draw_row_normals(row_key, x, num_draws, sizes.per_row)

    def one(parts: tuple[WeightModel | None, StandardNormals, Array]) -> Array:
        member, shared, own = parts
        prepared = member.prepared() if shared_weights is None else shared_weights  # type: ignore[union-attr]
        draw = prepared.draw(shared)

        def call(x: Array, own: Array) -> Array:
            return draw.outputs(model.network, x, own)

        if not rowwise:
            return call(x, own)
        return jax.vmap(lambda row, own_row: call(row[None], own_row[None])[0])(x, own)

    at_once = max(d for d in range(1, DRAWS_AT_ONCE + 1) if num_draws % d == 0)
    return jax.lax.map(one, (members, normals, rows), batch_size=at_once)


_functions = compiled(joint_functions)


class Predictive:
    """The predictive distribution at given inputs.

    Attributes are arrays with one row an input; regression with one target has no column axis.

    Parameters
    ----------
    draws : FunctionDraws
        The function draws that are mixed, and the likelihood p(y | f) of each, in standardised units.
    offset, scale : array
        y = offset + scale * (standardised y), an output at a time.
    flat : bool
        Whether the targets were a vector.
    """

    def __init__(
        self,
        draws: FunctionDraws,
        offset: np.ndarray,
        scale: np.ndarray,
        *,
        flat: bool,
    ) -> None:
        """Keep what is needed; each answer is computed when it is asked for."""
        self._draws, self._likelihood, self._flat = draws, draws.likelihood, flat
        self._offset, self._scale = np.asarray(offset, np.float64), np.asarray(scale, np.float64)

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self._draws.x)

    @property
    def num_draws(self) -> int:
        """How many function draws are mixed."""
        return self._draws.num_draws

    @property
    def is_classification(self) -> bool:
        """Whether the outputs are classes."""
        return isinstance(self._likelihood, Categorical)

    def _components(self) -> Iterator[tuple[slice, Likelihood, np.ndarray]]:
        """Yield rows, the likelihood of every draw there, [S, 1 or rows, ...], and the draws, [S, rows, K]."""
        for rows, f in self._draws.chunks():
            yield rows, self._likelihood, f

    def _reduce(self, function: Callable[..., Array | tuple], *per_row: np.ndarray) -> list[np.ndarray]:
        """Apply a jitted function of (likelihood, f, the rows' arrays) to every chunk and join the answers."""
        parts: list[tuple[np.ndarray, ...]] = []
        for rows, likelihood, f in self._components():
            extra = 0 if self._draws.whole else CHUNK_ROWS - f.shape[1]
            padded = np.pad(f, ((0, 0), (0, extra), (0, 0)), mode="edge")
            own = [np.pad(a[rows], [(0, extra), *[(0, 0)] * (a.ndim - 1)], mode="edge") for a in per_row]
            of_rows = jax.tree.map(lambda leaf, n=f.shape[1], e=extra: _padded_rows(leaf, n, e), likelihood)
            with in_float64():
                answer = function(as_float64(of_rows), jnp.asarray(padded), *map(jnp.asarray, own))
                answer = answer if isinstance(answer, tuple) else (answer,)
                parts.append(tuple(np.asarray(a)[: f.shape[1]] for a in answer))
        return [np.concatenate(column) for column in zip(*parts, strict=True)]

    def _shaped(self, array: np.ndarray) -> np.ndarray:
        return array[..., 0] if self._flat and not self.is_classification else array

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean, epistemic, aleatoric = self._reduce(_moments)
        return (
            self._shaped(self._offset + self._scale * mean),
            self._shaped(self._scale**2 * epistemic),
            self._shaped(self._scale**2 * aleatoric),
        )

    @property
    def mean(self) -> np.ndarray:
        """E[y | x]; class probabilities for a classifier."""
        return self._moments[0]

    @property
    def epistemic_variance(self) -> np.ndarray:
        """Variance of E[y | f] over draws: what more data would remove."""
        return self._moments[1]

    @property
    def aleatoric_variance(self) -> np.ndarray:
        """Mean of var[y | f] over draws: the noise of the observations."""
        return self._moments[2]

    @property
    def variance(self) -> np.ndarray:
        """Var[y | x] = epistemic + aleatoric."""
        return self._moments[1] + self._moments[2]

    @property
    def std(self) -> np.ndarray:
        """The root of the variance."""
        return np.sqrt(self.variance)

    @property
    def probabilities(self) -> np.ndarray:
        """Class probabilities, [N, C]."""
        if not self.is_classification:
            raise AttributeError("probabilities: this is a regression; use mean, std, quantile or interval.")
        return self.mean

    def quantile(self, q: float | np.ndarray) -> np.ndarray:
        """Return quantiles of y, [N] or [N, outputs]; with several levels, these first: [levels, N, ...]."""
        levels = np.atleast_1d(np.asarray(q, np.float64))
        if self.is_classification:
            raise AttributeError("quantile: classes have no order; use probabilities.")
        if not np.all((levels > 0) & (levels < 1)):
            raise ValueError(f"quantile: levels must lie strictly between 0 and 1; got {q!r}.")
        found = [self._standard_quantile(level) for level in levels]
        answers = np.stack([self._shaped(self._offset + self._scale * a) for a in found])
        return answers[0] if np.ndim(q) == 0 else answers

    def _standard_quantile(self, level: float) -> np.ndarray:
        """Return a quantile of y in standardised units, [N, outputs]."""
        return self._reduce(partial(_quantile, level=np.asarray(level)))[0]

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return the central interval that holds y with probability `level`."""
        low, high = self.quantile(np.array([(1 - level) / 2, (1 + level) / 2]))
        return low, high

    @cached_property
    def _entropies(self) -> tuple[np.ndarray, np.ndarray]:
        total, conditional = self._reduce(_entropies)
        shift = 0.0 if self.is_classification else float(np.sum(np.log(self._scale)))
        return total + shift, conditional + shift

    @property
    def entropy(self) -> np.ndarray:
        """H[y | x] in nats (differential for continuous y; of all outputs together).

        By quadrature over y, 16 nodes a draw: exact for classes, within 0.001 for one Gaussian output, within about
        0.02 for other likelihoods and several outputs (at 128 draws).
        """
        return self._entropies[0]

    @property
    def mutual_information(self) -> np.ndarray:
        """I[y; f | x] = H[y | x] - E H[y | f]: how much an observation here would tell of the function."""
        return np.maximum(self._entropies[0] - self._entropies[1], 0.0)

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return log p(y_n | x_n): the log density of given targets (log probability of class numbers)."""
        shift = 0.0 if self.is_classification else float(np.sum(np.log(self._scale)))
        return self._reduce(_log_prob, self._standardised(y, "log_prob"))[0] - shift

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Return P(Y_n <= y_n | x_n) at given targets, an output at a time: [N] or [N, outputs]."""
        if self.is_classification:
            raise AttributeError("cdf: classes have no order; use probabilities.")
        return self._shaped(self._reduce(_cdf, self._standardised(y, "cdf"))[0])

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return the continuous ranked probability score of given targets, an output at a time: [N] or [N, outputs].

        E|Y - y| - E|Y - Y'| / 2 for independent Y, Y' of this distribution, in the units of y: smaller is better, and
        |Y - y| where Y is certain. Exact for the Gaussian likelihood; for the others from 4096 values or more,
        within 0.005 standard deviations of Y.
        """
        if self.is_classification:
            raise AttributeError("crps: classes have no order; use log_prob.")
        return self._shaped(self._scale * self._reduce(_crps, self._standardised(y, "crps"))[0])

    def _standardised(self, y: np.ndarray, question: str) -> np.ndarray:
        """Return targets, as columns, in the units of the likelihood (class numbers as they are)."""
        y = np.asarray(y, np.float64)
        y = y[:, None] if y.ndim == 1 else y
        if y.shape[0] != len(self):
            raise ValueError(f"{question}: expected {len(self)} targets, one a row; got {y.shape[0]}.")
        if y.shape[1] != len(self._scale):
            raise ValueError(f"{question}: expected {len(self._scale)} column(s) of targets; got {y.shape[1]}.")
        return y if self.is_classification else (y - self._offset) / self._scale

    def draws(self) -> np.ndarray:
        """Return the mean of y under every function draw, [S, N] or [S, N, outputs]: coherent over rows.

        The only answer whose size grows with draws times rows.
        """
        parts = []
        for _, f in self._draws.coherent().chunks():
            with in_float64():
                parts.append(np.asarray(as_float64(self._likelihood).mean(jnp.asarray(f))))
        return self._shaped(self._offset + self._scale * np.concatenate(parts, axis=1))

    def sample(self, random_state: int) -> np.ndarray:
        """Return one observation y for every draw, noise and all, [S, N] or [S, N, outputs]."""
        rng = np.random.default_rng(random_state)
        parts = []
        for _, f in self._draws.coherent().chunks():
            with in_float64():
                likelihood = as_float64(self._likelihood)
                if not isinstance(likelihood, OutputLikelihood):
                    p = np.asarray(likelihood.mean(jnp.asarray(f)))
                    below = np.cumsum(p, axis=-1) < rng.uniform(size=(*p.shape[:-1], 1))
                    parts.append(np.sum(below, axis=-1, keepdims=True).astype(np.float64))
                else:
                    uniform = rng.uniform(1e-12, 1 - 1e-12, (*f.shape[:-1], likelihood.num_outputs(jnp.asarray(f))))
                    parts.append(np.asarray(likelihood.from_uniform(jnp.asarray(f), jnp.asarray(uniform))))
        y = np.concatenate(parts, axis=1)
        return y[..., 0] if self.is_classification else self._shaped(self._offset + self._scale * y)


def _padded_rows(leaf: np.ndarray, num_rows: int, extra: int) -> np.ndarray:
    """Return numbers of a likelihood, [S, rows or 1, ...], with the padding of the rows where they have any."""
    if leaf.ndim < 2 or leaf.shape[1] != num_rows or leaf.shape[1] == 1:
        return leaf
    return np.pad(leaf, [(0, 0), (0, extra), *[(0, 0)] * (leaf.ndim - 2)], mode="edge")


@compiled
def _moments(likelihood: Likelihood, f: Float[Array, "S B K"]) -> tuple[Array, Array, Array]:
    mean = likelihood.mean(f)
    return jnp.mean(mean, 0), jnp.var(mean, 0), jnp.mean(likelihood.variance(f), 0)


@compiled
def _log_prob(likelihood: Likelihood, f: Float[Array, "S B K"], y: Float[Array, "B P"]) -> Float[Array, " B"]:
    each = likelihood.log_prob(f, jnp.broadcast_to(y, (f.shape[0], *y.shape)))
    return jax.scipy.special.logsumexp(each, axis=0) - jnp.log(f.shape[0])


@compiled
def _cdf(likelihood: OutputLikelihood, f: Float[Array, "S B F"], y: Float[Array, "B K"]) -> Float[Array, "B K"]:
    return jnp.mean(likelihood.cdf(f, y[None]), 0)


@compiled
def _crps(likelihood: OutputLikelihood, f: Float[Array, "S B F"], y: Float[Array, "B K"]) -> Float[Array, "B K"]:
    return likelihood.mixture_crps(f, y)


@compiled
def _quantile(likelihood: OutputLikelihood, f: Float[Array, "S B F"], level: Leaf) -> Float[Array, "B K"]:
    """Invert the mixture's distribution function between the draws' own quantiles, which enclose it."""
    each = likelihood.from_uniform(f, jnp.full((likelihood.num_outputs(f),), level, f.dtype))
    low, high = jnp.min(each, 0) - 1e-9, jnp.max(each, 0) + 1e-9
    found = invert(lambda y: jnp.mean(likelihood.cdf(f, y[None]), 0), jnp.full_like(low, level), low, high)
    return likelihood.attained(found)


@compiled
def _entropies(likelihood: Likelihood, f: Float[Array, "S B K"]) -> tuple[Array, Array]:
    """Return H[y] = -E_f E_y|f log p(y) and E_f H[y | f], by nodes of y, a draw at a time."""
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
