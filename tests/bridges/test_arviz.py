"""ArviZ with our draws: the groups, their values, and what ArviZ makes of them."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    az = pytest.importorskip("arviz", reason='the bridge to ArviZ needs pip install ".[arviz]"')

from bridges.fitted import LABELS, X, Y, classifier, regressor, sampled
from metaprior.baselines import ExactGPRegressor
from metaprior.bridges import arviz as bridge
from metaprior.bridges import to_arviz


@pytest.fixture(scope="module")
def data():
    return to_arviz(regressor(), X, Y, num_draws=300)


def groups(data):
    """The names of the groups, of an InferenceData or a DataTree."""
    return set(data.groups()) if callable(data.groups) else {name.strip("/") for name in data.groups} - {""}


def test_the_groups_are_those_of_arviz(data):
    expected = {"posterior", "posterior_predictive", "log_likelihood", "observed_data", "constant_data"}
    assert groups(data) == expected
    assert dict(data["posterior"].sizes) == {"chain": 1, "draw": 300, "row": 24}
    assert set(data["posterior"].data_vars) == {"mean", "noise"}
    assert data["constant_data"]["X"].dims == ("row", "column")
    np.testing.assert_array_equal(data["observed_data"]["y"], Y)
    assert groups(to_arviz(regressor(), X, num_draws=5)) == expected - {"log_likelihood", "observed_data"}


def test_the_log_likelihood_is_that_of_the_drawn_means_and_noise(data):
    mean, noise = (data["posterior"][name].values[0] for name in ("mean", "noise"))
    expected = norm.logpdf(Y, mean, noise[:, None])
    np.testing.assert_allclose(data["log_likelihood"]["y"].values[0], expected, rtol=1e-9)
    # and the predictive draws are around the same means: a chi^2 of 300 * 24 degrees of freedom
    z = (data["posterior_predictive"]["y"].values[0] - mean) / noise[:, None]
    assert abs(np.mean(z**2) - 1) < 5 * np.sqrt(2 / z.size)


def test_loo_is_that_of_exact_importance_weights_where_they_are_even(data):
    loo = az.loo(data, pointwise=True)
    log_likelihood = data["log_likelihood"]["y"].values[0]
    harmonic = np.log(300) - logsumexp(-log_likelihood, axis=0)
    value = float(getattr(loo, "elpd_loo", None) or loo.elpd)
    assert np.isfinite(value)
    # smoothing moves only the largest weights, so the sum is near that of the raw ones
    assert abs(value - harmonic.sum()) < 0.2 * abs(harmonic.sum()) + 1
    in_sample = (logsumexp(log_likelihood, axis=0) - np.log(300)).sum()
    assert value < in_sample


def test_what_nuts_has_sampled_keeps_its_chains():
    model = sampled()
    data = to_arviz(model, X[:, :1], Y, parameters=True)
    assert dict(data["posterior"].sizes)["chain"] == 2
    assert dict(data["posterior"].sizes)["draw"] == 20
    # all 40 states are kept, so their densities are the history, chain by chain
    np.testing.assert_array_equal(data["sample_stats"]["lp"].values, model.log_joint_history_)
    states = model.predict_distribution(X[:, :1]).draws().reshape(2, 20, -1)
    np.testing.assert_allclose(data["posterior"]["mean"].values, states, rtol=1e-12)
    leaves = [name for name in data["posterior"].data_vars if name not in ("mean", "noise")]
    assert any("weights" in name for name in leaves)
    noise = np.exp(data["posterior"]["likelihood.log_noise"].values[..., 0]) * model.y_scale_[0]
    np.testing.assert_allclose(data["posterior"]["noise"].values, noise, rtol=1e-6)
    rhat = az.rhat(data, var_names=["mean"])
    assert np.all(np.isfinite(rhat["mean"]))


def test_states_that_are_thinned_stay_with_their_own_chains():
    model = sampled()
    kept = bridge._kept(model.log_joint_history_, 40)
    np.testing.assert_array_equal(kept, np.arange(40))
    thinned = bridge._kept(model.log_joint_history_, 7)
    assert np.sum(thinned < 20) in (3, 4)


def test_classes_have_probabilities_and_a_log_likelihood():
    data = to_arviz(classifier(), X, LABELS, num_draws=50)
    p = data["posterior"]["probabilities"]
    assert p.dims == ("chain", "draw", "row", "class")
    assert list(p.coords["class"].values) == list(classifier().classes_)
    number = np.searchsorted(classifier().classes_, LABELS)
    expected = np.log(p.values[0][:, np.arange(24), number])
    np.testing.assert_allclose(data["log_likelihood"]["y"].values[0], expected, rtol=1e-6)
    assert set(np.unique(data["posterior_predictive"]["y"])) <= {0, 1, 2}


def test_several_targets_have_an_axis():
    targets = np.stack([5 * Y - 2, X[:, 0]], axis=1)
    data = to_arviz(regressor("two targets"), 3 * X + 1, targets, num_draws=20)
    assert data["posterior"]["mean"].dims == ("chain", "draw", "row", "target")
    assert data["posterior"]["noise"].shape == (1, 20, 2)
    mean, noise = (data["posterior"][name].values[0] for name in ("mean", "noise"))
    expected = norm.logpdf(targets, mean, noise[:, None]).sum(axis=-1)
    np.testing.assert_allclose(data["log_likelihood"]["all_targets"].values[0], expected, rtol=1e-9)


def test_the_form_of_arviz_1_holds_the_same_arrays(data, monkeypatch):
    base = pytest.importorskip("arviz_base", reason="the groups in the form of ArviZ 1 need arviz-base")
    monkeypatch.setattr(bridge, "_library", lambda: (base, True))
    tree = to_arviz(regressor(), X, Y, num_draws=300)
    assert type(tree).__name__ == "DataTree"
    assert groups(tree) == groups(data)
    for group, name in (("posterior", "mean"), ("log_likelihood", "y"), ("constant_data", "X")):
        assert tree[group][name].dims == data[group][name].dims
        np.testing.assert_array_equal(tree[group][name].values, data[group][name].values)


def test_errors_say_what_was_expected():
    with pytest.raises(TypeError, match="that is a network; got ExactGPRegressor"):
        to_arviz(ExactGPRegressor(), X)
    with pytest.raises(ValueError, match="parameters: expected a posterior that NUTS has sampled; got a MetaGPReg"):
        to_arviz(regressor(), X, parameters=True)
    with pytest.raises(ValueError, match="y: expected 24 targets, one per row of X; got 3"):
        to_arviz(regressor(), X, Y[:3], num_draws=2)
    with pytest.raises(ValueError, match=r"y: expected the classes \['high', 'low', 'middle'\]; got \['a'\]"):
        to_arviz(classifier(), X, np.repeat("a", 24), num_draws=2)
