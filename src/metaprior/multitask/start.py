"""The starting values of a new task: the mean over the known tasks, but its own rows and its own period."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from metaprior.likelihoods import Likelihood
from metaprior.weights.multitask import Private

#: The leaf that a new task takes from its own data.
OWN = jax.tree_util.GetAttrKey("log_period")


def private_start(fresh: Private, known: Sequence[Private]) -> Private:
    """Return the private parts of a new task, from its own starting values and those of known tasks."""

    def chosen(path: tuple[Any, ...], own: Any, *others: Any) -> np.ndarray:
        return np.asarray(own) if path[-1] == OWN else _mean(others)

    return jax.tree_util.tree_map_with_path(chosen, fresh, *known)


def likelihood_start(fresh: Likelihood, known: Sequence[Likelihood]) -> Likelihood:
    """Return the likelihood of a new task: learned leaves at the mean of the known tasks, fixed leaves unchanged."""

    def chosen(own: Any, release_time: Any, *others: Any) -> np.ndarray:
        return _mean(others) if np.isfinite(release_time) else np.asarray(own)

    return jax.tree.map(chosen, fresh, fresh.release_times(), *known)


def _mean(leaves: Sequence[Any]) -> np.ndarray:
    return np.mean(np.stack(leaves), axis=0)
