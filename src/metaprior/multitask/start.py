"""Where a new task starts: at the mean of the tasks that are known, but at its own inputs and with its own period."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from metaprior.likelihoods import Likelihood
from metaprior.weights.metagp import MetaGP
from metaprior.weights.multitask import split

#: The leaves that a new task takes from its own data: the inputs of the inducing codes, and a period.
OWN = ("code_aux", "log_period")


def private_start(fresh: Any, known: Sequence[Any]) -> MetaGP:
    """Return the private part of a new task, from its own starting values and known tasks (all MetaGPs)."""

    def chosen(path: tuple, own: Any, *others: Any) -> np.ndarray:
        return np.asarray(own) if getattr(path[-1], "name", None) in OWN else _mean(others)

    return jax.tree_util.tree_map_with_path(chosen, *[split(weights)[1] for weights in (fresh, *known)])


def likelihood_start(fresh: Likelihood, known: Sequence[Likelihood]) -> Likelihood:
    """Return the likelihood of a new task: what is learned at the mean of known tasks, what is given as it is.

    The noise is held for most of a run; from the usual small start a short one would not bring it to its level.
    """

    def chosen(own: Any, release_time: Any, *others: Any) -> np.ndarray:
        return _mean(others) if np.isfinite(release_time) else np.asarray(own)

    return jax.tree.map(chosen, fresh, fresh.release_times(), *known)


def _mean(leaves: Sequence[Any]) -> np.ndarray:
    return np.mean(np.stack(leaves), axis=0)
