"""Functions drawn from the posterior of a network: they can be asked again at other inputs, and for their gradients."""

from typing import Any

import numpy as np

from metaprior.estimators.base import Estimator
from metaprior.estimators.fit import InputScaling
from metaprior.estimators.method import NetworkMethod
from metaprior.predictive.draws import FunctionDraws, NetworkDraws
from metaprior.predictive.integrated import CoherentDraws


def is_network(estimator: Any) -> bool:
    """Return whether an estimator is a network of this library."""
    return isinstance(estimator, Estimator) and isinstance(estimator._method(), NetworkMethod)


def network_draws(estimator: Any, X: np.ndarray, num_draws: int, key: np.ndarray) -> NetworkDraws | CoherentDraws:
    """Return functions, fixed by a key, at rows in the units of the data."""
    method = estimator._method()
    if not isinstance(method, NetworkMethod):
        raise TypeError(f"expected an estimator that is a network of this library; got {type(estimator).__name__}.")
    scaling = InputScaling(estimator.x_offset_, estimator.x_scale_)
    drawn = method.joint_draws(estimator, scaling(X), num_draws, key)
    assert isinstance(drawn, NetworkDraws | CoherentDraws)
    return drawn


def values_of(estimator: Estimator, draws: FunctionDraws) -> np.ndarray:
    """Return the values of drawn functions in the units of the data, [draws, rows] or [draws, rows, outputs]."""
    return estimator._fitted_targets().predictive(draws).draws()
