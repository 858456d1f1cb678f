"""The comparison with NUTS: what it refuses, and that it finds a posterior that was made too narrow."""

import dataclasses

import numpy as np
import pytest

from metaprior import MetaGPRegressor, diagnose

X = np.linspace(-1, 1, 12)[:, None]
Y = np.sin(3 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(12)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"hidden_layer_sizes": (200,)}, "expected at most 500 numbers below the output layer"),
        ({"output_layer": "drawn"}, "all weights are drawn"),
        ({"likelihood": "student_t"}, "expected Gaussian noise|keeps no training rows"),
    ],
)
def test_a_model_that_cannot_be_sampled_is_refused(settings, reason):
    pytest.importorskip("numpyro")
    model = MetaGPRegressor(
        **{"input_kernel": None, "hidden_layer_sizes": (2,), "max_iter": 3, "random_state": 0} | settings
    ).fit(X, Y)
    with pytest.raises(ValueError, match=f"nuts: .*({reason})"):
        diagnose(model, X, Y, nuts=True)


@pytest.mark.slow
def test_the_posterior_of_a_small_network_agrees_with_nuts_and_one_that_is_moved_does_not():
    pytest.importorskip("numpyro")
    model = MetaGPRegressor((2,), input_kernel=None, uncertain_hypers=False, random_state=0).fit(X, Y)
    found = diagnose(model, X, Y, nuts=True)["nuts"]
    assert found.numbers["rhat"] < 1.1
    assert 0.8 < found.numbers["std_ratio"] < 1.25
    assert found.numbers["mean_gap"] < 0.5
    weights = model.model_.weights
    (values,) = weights.sparse_gps
    moved = dataclasses.replace(values, mean=np.asarray(values.mean) + 3.0)
    other = MetaGPRegressor((2,), input_kernel=None, uncertain_hypers=False, random_state=0)
    weights = dataclasses.replace(weights, sparse_gps=(moved,))
    other.__dict__ = {**vars(model), "model_": dataclasses.replace(model.model_, weights=weights)}
    assert diagnose(other, X, Y, nuts=True)["nuts"].numbers["mean_gap"] > found.numbers["mean_gap"]
