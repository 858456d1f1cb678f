"""Drawn functions as BoTorch needs them: the same in every call, with gradients in the units of the data."""

import numpy as np
import pytest

from bridges.fitted import X, classifier, regressor
from metaprior.baselines import ExactGPRegressor
from metaprior.estimators.differentiable import FixedFunctions
from metaprior.estimators.network_functions import network_draws, values_of

KINDS = ["local", "two targets", "mfvi"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_values_are_those_of_the_draws_of_the_same_key(kind):
    model = regressor(kind)
    functions = FixedFunctions(model, 6, 3)
    draws = values_of(model, network_draws(model, X, 6, np.array([3, 2], np.uint32)))
    np.testing.assert_allclose(functions.values(X), draws.reshape(6, len(X), -1), rtol=1e-9, atol=1e-9)
    # a row's values do not depend on the rows beside it
    np.testing.assert_allclose(functions.values(X)[:, 3:5], functions.values(X[3:5]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_central_differences(kind):
    functions, rng = FixedFunctions(regressor(kind), 4, 0), np.random.default_rng(1)
    rows = rng.uniform(-0.5, 0.5, (5, 2))
    cotangents = rng.standard_normal((4, 5, functions.num_outputs))
    found, step = functions.pullback(rows, cotangents), 1e-5
    for column in range(2):
        move = step * np.eye(2)[column]
        change = (functions.values(rows + move) - functions.values(rows - move)) / (2 * step)
        # the error of the difference is of the order of step^2 and of eps / step
        np.testing.assert_allclose(found[:, column], np.sum(cotangents * change, axis=(0, 2)), rtol=1e-5, atol=1e-6)


def test_errors_say_what_was_expected():
    with pytest.raises(TypeError, match="expected a regressor of this library that is a network; got MetaGPClassifier"):
        FixedFunctions(classifier(), 4, 0)
    with pytest.raises(TypeError, match="that is a network; got ExactGPRegressor"):
        FixedFunctions(ExactGPRegressor(), 4, 0)
    with pytest.raises(ValueError, match="num_draws: expected a whole number of at least 1; got 0"):
        FixedFunctions(regressor(), 0, 0)
