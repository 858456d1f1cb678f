"""Stacked models, used by the ensemble and the sampler: members are stacked along a leading axis."""

import jax
import numpy as np

from metaprior.model import Model
from metaprior.predictive.draws import FunctionDraws, NetworkDraws


def num_members(stacked: Model) -> int:
    """Return the number of members of a stacked model."""
    return len(jax.tree.leaves(stacked)[0])


def all_members(stacked: Model, key: np.ndarray, x_unit: np.ndarray) -> FunctionDraws:
    """Return the function of every member."""
    return NetworkDraws(stacked, key, num_members(stacked), x_unit, stacked=True)


def random_members(stacked: Model, key: np.ndarray, x_unit: np.ndarray, num_draws: int) -> FunctionDraws:
    """Return the functions of members that are chosen at random."""
    chosen = np.random.default_rng(key).integers(num_members(stacked), size=num_draws)
    model = jax.tree.map(lambda leaf: leaf[chosen], stacked)
    return NetworkDraws(model, key, num_draws, x_unit, joint=True, stacked=True)
