"""Predictive distributions that are mixtures over draws of functions.

Given drawn functions, y follows the likelihood of each, and the predictive distribution mixes them with equal weights
(`DrawsPredictive`). Where the functions are Gaussian given what was drawn, as with an integrated output layer and
Gaussian noise, y is a mixture of few Gaussians (`GaussianMixturePredictive`). One pass over the rows answers every
question: what it finds is kept while the distribution lives, as long as it is not too large.

`mixture_of` joins the distributions of several models. A variational posterior sits in one of many modes; fits from
different seeds sit in different ones, and their mixture knows more of what it does not know. Models with different
kernels may be mixed as well: each draw counts the same.
"""

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar, final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

from metaprior.compilation import as_float64, in_float64
from metaprior.likelihoods import Categorical, Gaussian, OutputLikelihood
from metaprior.predictive import gaussian_mixture, reductions
from metaprior.predictive.base import Entropies, Moments, Predictive
from metaprior.predictive.chunks import Chunks, in_threads, rows_of
from metaprior.predictive.draws import CHUNK_ROWS, MANY_ROWS, FunctionDraws, GaussianChunk, JoinedDraws
from metaprior.predictive.gaussian_mixture import Gaussians
from metaprior.predictive.limits import require_room
from metaprior.predictive.reductions import ComponentChunk, reduce_chunks

#: Nodes of every component that the entropy of several outputs is the mean over.
NUM_NODES = 16


M = TypeVar("M", bound="MixturePredictive")


class MixturePredictive(Predictive):
    """A predictive distribution that mixes likelihoods, or Gaussians, over draws of functions.

    Parameters
    ----------
    draws : FunctionDraws
        The functions that are mixed, and the likelihood p(y | f) of each, in standardised units.
    offset, scale : array
        y = offset + scale * (standardised y), one number per output.
    flat : bool
        Whether the targets were a vector.
    classes : array, default=None
        The labels of classes.
    """

    #: How many rows a chunk has where one is made of what is known of the rows of a larger distribution.
    most_rows = CHUNK_ROWS

    def __init__(
        self,
        draws: FunctionDraws,
        offset: np.ndarray,
        scale: np.ndarray,
        *,
        flat: bool,
        classes: np.ndarray | None = None,
    ) -> None:
        super().__init__(offset, scale, flat=flat, classes=classes)
        self._draws, self._likelihood = draws, draws.likelihood

    def __len__(self) -> int:
        """Return the number of inputs."""
        return len(self._draws.x)

    @property
    def num_draws(self) -> int:
        """How many functions `draws` and `sample` return."""
        return self._draws.num_draws

    @property
    def is_classification(self) -> bool:
        """Whether the targets are classes."""
        return isinstance(self._likelihood, Categorical)

    def mixture_with(self, others: Sequence["MixturePredictive"]) -> Predictive:
        """Return the mixture of this distribution and others at the same inputs."""
        for other in others:
            self._require_like(other)
        joined = JoinedDraws([part._draws for part in (self, *others)])
        mixture = predictive_of(joined, self._offset, self._scale, flat=self._flat, classes=self._classes)
        mixture.inputs, mixture.index = self.inputs, self.index
        return mixture

    def _require_like(self, other: "MixturePredictive") -> None:
        same = {
            "inputs": len(self) == len(other),
            "likelihood": type(self._likelihood) is type(other._likelihood)
            and self._draws.has_gaussians == other._draws.has_gaussians,
            "units of the targets": np.array_equal(self._offset, other._offset)
            and np.array_equal(self._scale, other._scale),
            "classes": _labels(self._classes) == _labels(other._classes),
        }
        wrong = [name for name, holds in same.items() if not holds]
        if wrong:
            raise ValueError(
                f"mixture_of: expected distributions with the same {', '.join(same)}; the {', '.join(wrong)} differ. "
                "Fit all models to the same data, with one likelihood, and predict the same rows with each."
            )

    # --- some of the rows ---------------------------------------------------------------

    @property
    @abc.abstractmethod
    def _chunks(self) -> Chunks[Any]:
        """What a pass over the rows finds."""

    @abc.abstractmethod
    def _known_of(self, kept: list[Any], rows: np.ndarray) -> list[Any]:
        """Return what kept chunks say of some of the rows, in chunks."""

    def _at_rows(self: M, rows: np.ndarray) -> M:
        part = type(self)(self._draws.at_rows(rows), self._offset, self._scale, flat=self._flat, classes=self._classes)
        kept = self._chunks.kept
        if kept is not None:
            vars(part)["_chunks"] = Chunks(lambda: self._known_of(kept, rows), self._known_of(kept, rows))
        return part

    def _cut(self, num_rows: int) -> list[slice]:
        """Return the rows of chunks of at most so many rows as one has."""
        starts = range(0, num_rows, self.most_rows)
        return [slice(start, min(start + self.most_rows, num_rows)) for start in starts]

    # --- one output at a time, where the components are Gaussian ------------------------

    @abc.abstractmethod
    def _gaussians(self) -> Iterable[Gaussians]:
        """Return the components of every output, one chunk of rows at a time."""

    def _by_gaussians(self, answer: Callable[..., np.ndarray], *arguments: Any) -> np.ndarray:
        """Return what `gaussian_mixture` says of all rows; targets among the arguments are cut as the rows are."""

        def of_chunk(part: Gaussians) -> np.ndarray:
            return answer(part, *[a[part.rows] if isinstance(a, np.ndarray) else a for a in arguments])

        return np.concatenate(in_threads(of_chunk, self._gaussians()))

    @property
    @abc.abstractmethod
    def _is_gaussian(self) -> bool:
        """Whether y is Gaussian given every function, or every draw below, so that there are components."""

    def _standard_components(self) -> tuple[np.ndarray, np.ndarray]:
        if not self._is_gaussian:
            return super()._standard_components()
        parts = [(part.mean, np.broadcast_to(part.std, part.mean.shape)) for part in self._gaussians()]
        means, stds = zip(*parts, strict=True)
        return np.concatenate(means, axis=1), np.concatenate(stds, axis=1)

    def _standard_quantile(self, level: float) -> np.ndarray:
        return self._by_gaussians(gaussian_mixture.quantile, level)

    def _standard_cdf(self, y: np.ndarray) -> np.ndarray:
        return self._by_gaussians(gaussian_mixture.cdf, y)

    def _standard_crps(self, y: np.ndarray) -> np.ndarray:
        return self._by_gaussians(gaussian_mixture.crps, y)

    @property
    def _has_one_output(self) -> bool:
        return len(self._scale) == 1

    def _standard_draws(self) -> np.ndarray:
        parts = []
        for _, f in self._draws.coherent().chunks():
            with in_float64():
                parts.append(np.asarray(as_float64(self._likelihood).mean(jnp.asarray(f))))
        return np.concatenate(parts, axis=1)

    def _standard_covariance(self) -> np.ndarray:
        drawn = np.moveaxis(self._standard_draws(), 2, 0)
        gaps = drawn - np.mean(drawn, axis=1, keepdims=True)
        return np.swapaxes(gaps, 1, 2) @ gaps / self.num_draws

    def _standard_joint_log_prob(self, y: np.ndarray) -> float:
        each = np.zeros(self.num_draws)
        for rows, f in self._draws.coherent().chunks():
            with in_float64():
                targets = jnp.broadcast_to(jnp.asarray(y[rows]), (*f.shape[:2], y.shape[1]))
                each += np.sum(np.asarray(as_float64(self._likelihood).log_prob(jnp.asarray(f), targets)), axis=1)
        return float(logsumexp(each) - np.log(len(each)))

    def _standard_sample(self, rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([self._observed(f, rng) for _, f in self._draws.coherent().chunks()], axis=1)

    def _observed(self, f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return one observation of every function at a chunk of rows."""
        with in_float64():
            likelihood, values = as_float64(self._likelihood), jnp.asarray(f)
            if isinstance(likelihood, OutputLikelihood):
                uniform = rng.uniform(1e-12, 1 - 1e-12, (*f.shape[:-1], likelihood.num_outputs(values)))
                return np.asarray(likelihood.from_uniform(values, jnp.asarray(uniform)))
            p = np.asarray(likelihood.mean(values))
            below = np.cumsum(p, axis=-1) < rng.uniform(size=(*p.shape[:-1], 1))
            return np.sum(below, axis=-1, keepdims=True).astype(np.float64)


@final
class DrawsPredictive(MixturePredictive):
    """The predictive distribution that mixes the likelihoods of drawn functions."""

    @cached_property
    def _chunks(self) -> Chunks[tuple[slice, np.ndarray]]:
        """The values of the functions."""
        return Chunks(self._draws.chunks)

    def _known_of(self, kept: list[tuple[slice, np.ndarray]], rows: np.ndarray) -> list[tuple[slice, np.ndarray]]:
        return [(cut, rows_of(kept, [f for _, f in kept], rows[cut])) for cut in self._cut(len(rows))]

    @property
    def _is_gaussian(self) -> bool:
        return self._likelihood.is_gaussian

    def _reduce(self, reduction: Callable[..., Array | tuple[Array, ...]], *per_row: np.ndarray) -> list[np.ndarray]:
        components = (ComponentChunk(rows, self._likelihood, f) for rows, f in self._chunks)
        return reduce_chunks(components, reduction, *per_row)

    def _standard_quantile(self, level: float) -> np.ndarray:
        if self._is_gaussian:
            return super()._standard_quantile(level)
        return self._reduce(partial(reductions.quantile, level=np.asarray(level)))[0]

    def _standard_cdf(self, y: np.ndarray) -> np.ndarray:
        return super()._standard_cdf(y) if self._is_gaussian else self._reduce(reductions.cdf, y)[0]

    def _standard_crps(self, y: np.ndarray) -> np.ndarray:
        return super()._standard_crps(y) if self._is_gaussian else self._reduce(reductions.crps, y)[0]

    def _gaussians(self) -> Iterable[Gaussians]:
        for rows, f in self._chunks:
            with in_float64():
                likelihood, values = as_float64(self._likelihood), jnp.asarray(f)
                mean, variance = np.asarray(likelihood.mean(values)), np.asarray(likelihood.variance(values))
            yield Gaussians(rows, mean, np.sqrt(variance))

    def _standard_moments(self) -> Moments:
        return Moments(*self._reduce(reductions.moments))

    def _standard_entropies(self) -> Entropies:
        if not (self._is_gaussian and self._has_one_output):
            return Entropies(*self._reduce(reductions.entropies))
        logs = np.concatenate([np.mean(np.log(part.std[..., 0]), axis=0) for part in self._gaussians()])
        return Entropies(self._by_gaussians(gaussian_mixture.entropy), logs + 0.5 * np.log(2 * np.pi * np.e))

    def _standard_log_prob(self, y: np.ndarray) -> np.ndarray:
        if self._is_gaussian:
            return self._by_gaussians(gaussian_mixture.log_prob, y)
        return self._reduce(reductions.log_prob, y)[0]


@final
class GaussianMixturePredictive(MixturePredictive):
    """The predictive distribution where y is Gaussian at each row, given what was drawn: a mixture of Gaussians.

    Functions are drawn for `draws` and `sample` alone; all else follows from the moments of the Gaussians.
    """

    most_rows = MANY_ROWS

    @cached_property
    def _chunks(self) -> Chunks[GaussianChunk]:
        """The moments of the functions."""
        return Chunks(self._draws.gaussians)

    @property
    def _is_gaussian(self) -> bool:
        return True

    def _known_of(self, kept: list[GaussianChunk], rows: np.ndarray) -> list[GaussianChunk]:
        def of(cut: slice) -> GaussianChunk:
            mean = rows_of(kept, [chunk.mean for chunk in kept], rows[cut])
            covariance = rows_of(kept, [chunk.covariance for chunk in kept], rows[cut])
            return GaussianChunk(cut, mean, covariance, kept[0].noise)

        return [of(cut) for cut in self._cut(len(rows))]

    def _standard_covariance(self) -> np.ndarray:
        require_room("covariance", len(self), len(self._scale) ** 2)
        means, within = [], np.zeros(())
        for mean, covariance, _ in self._draws.joint_gaussians():
            means.append(mean.T)
            within = within + np.einsum("knkm->knm", covariance)
        gaps = np.swapaxes(np.stack(means) - np.mean(means, axis=0), 0, 1)  # [K, S, N]
        return (within + np.swapaxes(gaps, 1, 2) @ gaps) / len(means)

    def _standard_joint_log_prob(self, y: np.ndarray) -> float:
        require_room("joint_log_prob", len(self), len(self._scale) ** 2)
        each = [
            gaussian_mixture.joint_log_density(
                covariance.reshape(y.size, -1), (y - mean).T.ravel(), np.repeat(noise, len(y))
            )
            for mean, covariance, noise in self._draws.joint_gaussians()
        ]
        return float(logsumexp(each) - np.log(len(each)))

    def _gaussians(self) -> Iterable[Gaussians]:
        for chunk in self._chunks:
            yield Gaussians(chunk.rows, chunk.mean, np.sqrt(chunk.variance + chunk.noise**2))

    def _joint(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield rows, and for every component the mean and the covariance of y, noise and all."""
        for rows, mean, covariance, noise in self._chunks:
            yield rows, mean, covariance + noise[..., None] ** 2 * np.eye(noise.shape[-1])

    def _noise(self) -> np.ndarray:
        """Return the observation noise of every function, [S, K]."""
        assert isinstance(self._likelihood, Gaussian)
        return np.exp(np.asarray(self._likelihood.log_noise, np.float64))[:, 0]

    def _standard_moments(self) -> Moments:
        mean = np.concatenate([np.mean(chunk.mean, axis=0) for chunk in self._chunks])
        spread = [np.mean(chunk.variance, axis=0) + np.var(chunk.mean, axis=0) for chunk in self._chunks]
        noise = np.mean(self._noise() ** 2, axis=0)
        return Moments(mean, np.concatenate(spread), np.broadcast_to(noise, mean.shape))

    def _standard_log_prob(self, y: np.ndarray) -> np.ndarray:
        if self._has_one_output:
            return self._by_gaussians(gaussian_mixture.log_prob, y)
        parts = [
            gaussian_mixture.outputs_log_density(mean, covariance, y[None, rows])[0]
            for rows, mean, covariance in self._joint()
        ]
        return np.concatenate(parts)

    def _standard_entropies(self) -> Entropies:
        total = self._by_gaussians(gaussian_mixture.entropy) if self._has_one_output else self._joint_entropy()
        # H[y | f] = log(2 pi e noise^2) / 2, summed over outputs
        given = np.sum(0.5 * np.log(2 * np.pi * np.e) + np.mean(np.log(self._noise()), axis=0))
        return Entropies(total, np.full_like(total, given))

    def _joint_entropy(self) -> np.ndarray:
        """Return H[y] of several outputs: -E log p(y) over nodes of every component."""
        nodes = ndtri(qmc.Sobol(len(self._scale), scramble=True, seed=0).random(NUM_NODES))
        parts = []
        for _, mean, covariance in self._joint():
            factor = np.linalg.cholesky(covariance)
            y = mean + np.einsum("sbkl,rl->rsbk", factor, nodes)
            flat = y.reshape(-1, *mean.shape[1:])
            parts.append(-np.mean(gaussian_mixture.outputs_log_density(mean, covariance, flat), axis=0))
        return np.concatenate(parts)


def _labels(classes: np.ndarray | None) -> list[Any] | None:
    return None if classes is None else classes.tolist()


def predictive_of(
    draws: FunctionDraws,
    offset: np.ndarray,
    scale: np.ndarray,
    *,
    flat: bool,
    classes: np.ndarray | None = None,
) -> MixturePredictive:
    """Return the predictive distribution, in the units of the data, of a model whose functions are given."""
    form = GaussianMixturePredictive if draws.has_gaussians else DrawsPredictive
    return form(draws, offset, scale, flat=flat, classes=classes)


def mixture_of(predictives: Sequence[Predictive]) -> Predictive:
    """Return the mixture of predictive distributions at the same inputs, each function draw with the same weight.

    Parameters
    ----------
    predictives : sequence of Predictive
        What `predict_distribution` returned at the same X, from models that were fitted to the same data and mix draws
        (an exact GP does not).

    Returns
    -------
    Predictive

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior import MetaGPRegressor
    >>> from metaprior.predictive.mixture import mixture_of
    >>> X, y = np.linspace(0, 1, 20)[:, None], np.linspace(0, 1, 20) ** 2
    >>> usual = {"input_kernel": "rbf", "max_iter": 20}
    >>> models = [MetaGPRegressor((5,), **usual, random_state=seed).fit(X, y) for seed in range(2)]
    >>> mixture_of([model.predict_distribution(X) for model in models]).num_draws
    256
    """
    parts = [part for part in predictives if isinstance(part, MixturePredictive)]
    if not parts or len(parts) < len(predictives):
        raise ValueError(
            "mixture_of: expected at least one predictive distribution, and only such as mix function draws; got "
            f"{[type(part).__name__ for part in predictives]}."
        )
    return parts[0].mixture_with(parts[1:])
