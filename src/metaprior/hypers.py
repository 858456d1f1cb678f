"""Uncertain hyper-parameters: q(log theta), a Gaussian for every lengthscale, period, scale and noise.

With ten or twenty rows the evidence hardly determines the lengthscale, and a point estimate is overconfident outside
the data. So theta is drawn along with everything else: log theta ~ N(mean, std^2) independently, with the prior
N(start, PRIOR_STD^2), and the bound has one more KL.
"""

import dataclasses
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.kernels.chosen_sum import ChosenSum
from metaprior.latents import gaussian_kl
from metaprior.likelihoods import Likelihood
from metaprior.random import take
from metaprior.types import Fixed, Leaf
from metaprior.weight_gp import WeightNoise

#: Standard deviation of log theta in the prior, and in the posterior at the start.
PRIOR_STD, INITIAL_STD = 1.0, 0.05

M = TypeVar("M", bound=eqx.Module)


class HyperPosterior(eqx.Module):
    """q(log theta), whose means are leaves of the model; `places` are their positions among the leaves."""

    log_stds: tuple[Leaf, ...]
    centres: Fixed
    places: tuple[int, ...] = eqx.field(static=True)

    @classmethod
    def initial(cls, model: eqx.Module, release_times: eqx.Module) -> "HyperPosterior":
        """Start at the values of the model with a small standard deviation; fixed leaves are left out."""
        leaves, times = jax.tree.leaves(model), jax.tree.leaves(release_times)
        marked = jax.tree.leaves(_marked(model))
        places = tuple(
            k for k, (mark, time) in enumerate(zip(marked, times, strict=True)) if mark and np.isfinite(time)
        )
        own = tuple(np.asarray(leaves[place]) for place in places)
        return cls(tuple(np.full(leaf.shape, np.log(INITIAL_STD)) for leaf in own), Fixed(own), places)

    @property
    def num_normals(self) -> int:
        """The number of normals that a draw needs."""
        return int(sum(np.prod(s.shape) for s in self.log_stds))

    def moved(self, model: M, normals: Float[Array, " n"]) -> M:
        """Return the model with its hyper-parameters drawn."""
        leaves, structure = jax.tree.flatten(model)
        parts = take(normals, *[s.shape for s in self.log_stds])
        for place, log_std, part in zip(self.places, self.log_stds, parts, strict=True):
            leaves[place] = leaves[place] + jnp.exp(log_std) * part
        return jax.tree.unflatten(structure, leaves)

    def kl(self, model: eqx.Module) -> Float[Array, ""]:
        """Return KL[q(log theta) || N(start, PRIOR_STD^2)]."""
        return sum(self._kls(model), jnp.zeros(()))

    def _kls(self, model: eqx.Module) -> list[Array]:
        """Return the KL of every leaf."""
        leaves, triples = jax.tree.leaves(model), zip(self.places, self.log_stds, self.centres.value, strict=True)
        return [
            gaussian_kl((leaves[place] - centre) / PRIOR_STD, log_std - np.log(PRIOR_STD))
            for place, log_std, centre in triples
        ]

    def log_ratio(self, model: eqx.Module, normals: Float[Array, " n"]) -> Float[Array, ""]:
        """Return log p - log q of the hyper-parameters that the first normals draw."""
        leaves, total = jax.tree.leaves(model), jnp.zeros(())
        parts = take(normals[: self.num_normals], *[s.shape for s in self.log_stds])
        for place, log_std, centre, n in zip(self.places, self.log_stds, self.centres.value, parts, strict=True):
            moved = leaves[place] + jnp.exp(log_std) * n
            log_p = -0.5 * ((moved - centre) / PRIOR_STD) ** 2 - np.log(PRIOR_STD)
            total = total + jnp.sum(log_p + 0.5 * n**2 + log_std)
        return total


class HyperPosteriorOfChosen(HyperPosterior):
    """The same for a model with a sum of some kernels of several: the others have no KL."""

    counts: Fixed

    @classmethod
    def of(cls, posterior: HyperPosterior, model: Any) -> "HyperPosteriorOfChosen":
        """Return the posterior with the leaves of terms that do not count left out of its KL."""
        marks = jax.tree.leaves(_counted(model))
        counts = np.array([float(marks[place]) for place in posterior.places])
        return cls(posterior.log_stds, posterior.centres, posterior.places, Fixed(counts))

    def kl(self, model: eqx.Module) -> Float[Array, ""]:
        """Return the KL of the leaves that count."""
        return jnp.stack(self._kls(model)) @ self.counts.value


def _counted(model: Any) -> Any:
    """Return a tree like the model with 1 for every leaf, and 0 for those of terms that do not count."""

    def of(node: Any) -> Any:
        if not isinstance(node, ChosenSum):
            return jax.tree.map(lambda _: 1.0, node)
        pairs = zip(node.terms, node.counts.value.tolist(), strict=True)
        return ChosenSum(tuple(jax.tree.map(lambda _, c=count: c, term) for term, count in pairs), Fixed(1.0))

    return jax.tree.map(of, dataclasses.replace(model, hypers=None), is_leaf=lambda node: isinstance(node, ChosenSum))


def _marked(model: eqx.Module) -> eqx.Module:
    """Return a tree like the model that marks the leaves which are hyper-parameters."""
    kinds = (Kernel, Likelihood, WeightNoise)

    def of(path: tuple[Any, ...], node: object) -> object:
        named = bool(path) and path[-1] == jax.tree_util.GetAttrKey("log_scale")
        return jax.tree.map(lambda _: True, node) if isinstance(node, kinds) else named

    return jax.tree_util.tree_map_with_path(of, model, is_leaf=lambda node: isinstance(node, kinds))
