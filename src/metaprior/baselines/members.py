"""Stacked models, used by the ensemble and the sampler: members are stacked along a leading axis."""

from typing import Any

import jax
import numpy as np

from metaprior.estimators.method import NetworkMethod
from metaprior.model import Model
from metaprior.predictive.draws import FunctionDraws, NetworkDraws


def num_members(stacked: Model) -> int:
    """Return the number of members of a stacked model."""
    return len(jax.tree.leaves(stacked)[0])


def all_members(stacked: Model, key: np.ndarray, x_unit: np.ndarray) -> FunctionDraws:
    """Return the function of every member."""
    return NetworkDraws(stacked, key, num_members(stacked), x_unit, stacked=True)


class MembersMethod(NetworkMethod):
    """A method whose predictions mix the members of a stacked model."""

    def num_predict_draws(self, model: Model) -> int:
        """Return the number of members."""
        return num_members(model)

    def function_draws(self, fitted: Any, x_unit: np.ndarray) -> FunctionDraws:
        """Return the function of every member."""
        return all_members(fitted.model_, fitted.draw_key_, x_unit)

    def joint_draws(self, fitted: Any, x_unit: np.ndarray, num_draws: int, key: np.ndarray) -> FunctionDraws:
        """Return the functions of members that are chosen at random."""
        chosen = np.random.default_rng(key).integers(num_members(fitted.model_), size=num_draws)
        model = jax.tree.map(lambda leaf: leaf[chosen], fitted.model_)
        return NetworkDraws(model, key, num_draws, x_unit, joint=True, stacked=True)
