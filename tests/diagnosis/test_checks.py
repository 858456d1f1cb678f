"""Every finding appears where its trouble is, and nowhere on a fit that is in order."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import binomtest, kstest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metaprior import MetaGPRegressor, diagnose, kernels
from metaprior.diagnosis.checks.bounds import bounds
from metaprior.diagnosis.checks.calibration import ks_distance, uniform_test
from metaprior.diagnosis.checks.convergence import convergence
from metaprior.diagnosis.checks.coverage import covered
from metaprior.diagnosis.checks.hidden_units import hidden_units
from metaprior.diagnosis.checks.input_kernel import input_kernel
from metaprior.diagnosis.checks.numerics import numerics
from metaprior.diagnosis.checks.residuals import neighbour_correlation
from metaprior.diagnosis.subject import Subject

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (160, 1))
F, NOISE = np.sin(3 * X[:, 0]), 0.1
Y = F + NOISE * RNG.standard_normal(160)
SEEN, HELD = slice(0, 60), slice(60, 160)


class Known(RegressorMixin, BaseEstimator):
    """A regressor that knows the function and the noise that the data come from."""

    def fit(self, X, y):
        self.num_targets_ = np.ndim(y)
        return self

    def predict(self, X, return_std=False):
        mean = np.sin(3 * X[:, 0])
        mean = mean if self.num_targets_ == 1 else np.column_stack([mean, np.zeros(len(X))])
        return (mean, np.full(mean.shape, NOISE)) if return_std else mean


class SureClasses(ClassifierMixin, BaseEstimator):
    """A classifier that gives the class of the sign of x a fixed probability."""

    def __init__(self, confidence=0.9):
        self.confidence = confidence

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = np.where(X[:, 0] > 0, self.confidence, 1 - self.confidence)
        return np.column_stack([1 - p, p])


def flagged(diagnosis):
    return {found.name for found in diagnosis.warnings}


def known(y):
    return diagnose(Known().fit(X, Y), X, y)


# --- predictions that are right, and targets that are not what they expect -----------------


def test_predictions_that_are_right_have_no_warnings():
    found = known(Y)
    assert found.ok
    assert "160 held-out rows" in found.title
    left = {own.name for own in found.left_out}
    assert left == {"convergence", "numerics", "input_kernel", "bounds", "hidden_units", "pareto_k"}


def test_targets_that_are_further_away_than_predicted_make_it_too_narrow():
    found = known(F + 2.5 * (Y - F))
    assert {"calibration", "coverage"} <= flagged(found)
    assert "too narrow" in found["calibration"].sentence
    numbers = found["coverage"].numbers
    assert numbers["fraction_90"] < numbers["high_90"] < 0.9


def test_targets_that_are_nearer_than_predicted_make_it_too_wide_unless_they_were_fitted():
    y = F + 0.2 * (Y - F)
    assert "too wide" in known(y)["calibration"].sentence
    assert known(y)["coverage"].severity == "note"
    own = diagnose(Known().fit(X, Y), X, y, rows="training")["calibration"]
    assert own.severity == "ok"
    assert "as they usually do" in own.sentence


def test_targets_that_are_all_higher_are_told_as_such():
    assert "too low: targets lie above" in known(Y + 0.15)["calibration"].sentence


def test_shuffled_targets_are_worse_than_a_constant():
    found = known(RNG.permutation(Y))["skill"]
    assert "worse than a constant" in found.sentence
    assert found.numbers["gain"] == pytest.approx(found.numbers["constant_nll"] - found.numbers["nll"])


def test_errors_that_are_smooth_in_the_inputs_are_structure():
    found = known(Y + 0.3 * np.sin(8 * X[:, 0]))["residuals"]
    assert found.severity == "warning"
    assert found.numbers["correlation"] > 0.5


def test_several_targets_are_judged_by_the_worst():
    both = np.column_stack([Y, 3 * NOISE * RNG.standard_normal(160)])
    found = diagnose(Known().fit(X, both), X, both)
    assert "of target 1 are too narrow" in found["calibration"].sentence
    assert "(of target 1, the least of 2)" in found["signal"].sentence


def test_a_pipeline_is_judged_by_its_end():
    x = X / 3 + 1
    model = make_pipeline(StandardScaler(), Known()).fit(x, Y)
    assert "worse than a constant" in diagnose(model, x, RNG.permutation(Y))["skill"].sentence


def test_probabilities_are_calibrated_overconfident_or_not_confident_enough():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((400, 2))
    labels = np.where((rng.uniform(size=400) < 0.8) == (x[:, 0] > 0), "yes", "no")
    expected = {0.8: "are calibrated", 0.95: "are overconfident", 0.6: "are not confident enough"}
    for confidence, told in expected.items():
        found = diagnose(SureClasses(confidence).fit(x, labels), x, labels)["calibration"]
        assert told in found.sentence
        assert found.numbers["confidence"] == pytest.approx(confidence)
    with pytest.raises(ValueError, match=r"y: expected classes among .*; got \['maybe'\]"):
        diagnose(SureClasses().fit(x, labels), x, np.full(400, "maybe"))


def test_rows_are_training_rows_or_held_out_rows():
    with pytest.raises(ValueError, match="rows: expected"):
        diagnose(Known().fit(X, Y), X, Y, rows="test")


# --- fits of a MetaGP -------------------------------------------------------------------------


def regressor(**settings):
    return MetaGPRegressor(**{"hidden_layer_sizes": (4,), "input_kernel": "rbf", "random_state": 0} | settings)


def subject_of(model, X=X[SEEN], y=Y[SEEN]):
    return Subject(model, X, y, rows="training", seed=0)


@pytest.fixture(scope="module")
def good():
    return regressor().fit(X[SEEN], Y[SEEN])


def test_a_good_fit_has_no_warnings_on_held_out_rows_and_on_its_own(good):
    held, own = diagnose(good, X[HELD], Y[HELD]), diagnose(good, X[SEEN], Y[SEEN])
    assert held.ok
    assert own.ok
    assert "100 held-out rows" in held.title
    assert "60 training rows" in own.title
    assert np.isfinite(held["pareto_k"].numbers["k"])
    assert held["convergence"].sentence.endswith("because the bound was flat.")


def test_a_fit_that_was_cut_short_has_not_converged():
    found = convergence(subject_of(regressor(max_iter=20).fit(X[SEEN], Y[SEEN])))
    assert found.severity == "warning"
    assert found.advice == "Raise max_iter (20 now)."


def with_state(good, **state):
    changed = regressor()
    changed.__dict__ = {**vars(good), **state}
    return changed


def with_weights(good, **leaves):
    weights = dataclasses.replace(good.model_.weights, **leaves)
    return with_state(good, model_=dataclasses.replace(good.model_, weights=weights))


def test_a_lengthscale_beyond_the_data_switches_the_input_kernel_off(good):
    assert input_kernel(subject_of(good)).severity == "ok"
    long = good.model_.weights.input_kernel.set_params(lengthscale=[2000.0])
    found = input_kernel(subject_of(with_weights(good, input_kernel=long)))
    assert found.severity == "warning"
    assert "the model is the global one" in found.sentence


def test_hidden_units_that_add_nothing_are_counted(good):
    log_scale = np.array(good.model_.weights.log_scale)
    log_scale[-1] = [-20.0, 0.0]
    found = hidden_units(subject_of(with_weights(good, log_scale=log_scale)))
    assert found.severity == "note"
    assert found.numbers["share"] < 1e-6


def test_a_bound_that_binds_is_named_and_one_that_does_not_is_not(good):
    kernel = kernels.RBF([3.0, 9.0], bounds={"lengthscale": (3.0, 100.0)}).on(0, 1)
    changed = with_state(good, input_kernel_=kernel, n_features_in_=2)
    found = bounds(subject_of(good))
    assert found.severity == "ok"
    own = subject_of(good)
    own.estimator = changed
    found = bounds(own)
    assert found.severity == "warning"
    assert "input_kernel__inner__lengthscale for column 0 is at its lower bound 3" in found.sentence
    assert "column 1" not in found.sentence


def test_a_period_longer_than_the_data_is_told(good):
    found = bounds(subject_of(with_state(good, input_kernel_=kernels.Periodic(period=9.0))))
    assert "the period 9 of input_kernel is longer than the data" in found.sentence


def test_roll_backs_and_jitter_are_told(good):
    assert numerics(subject_of(good)).severity == "ok"
    assert "learning_rate_init" in numerics(subject_of(with_state(good, n_roll_backs_=2))).advice
    assert "n_inducing" in numerics(subject_of(with_state(good, jitter_=0.1))).advice


# --- the statistics -----------------------------------------------------------------------


def test_the_distance_from_uniform_is_that_of_scipy():
    values = np.random.default_rng(5).beta(1.2, 1.0, 70)
    assert ks_distance(values) == pytest.approx(kstest(values, "uniform").statistic)


def test_uniform_values_are_seldom_called_otherwise_and_narrow_ones_always():
    rng = np.random.default_rng(6)
    null = [uniform_test(rng.uniform(size=80), rng.uniform(size=(200, 80, 1))).p < 0.05 for _ in range(200)]
    assert np.mean(null) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    test = uniform_test(rng.beta(0.3, 0.3, 80), rng.uniform(size=(200, 80, 1)))
    assert test.p < 0.01
    assert test.spread > 1


def test_rows_that_share_their_errors_are_less_surprising():
    """All rows have one error: half of such data have no row on one side, and the model says so itself."""
    pit = np.full(50, 0.95)
    shared = np.repeat(np.random.default_rng(7).uniform(size=(200, 1, 1)), 50, axis=1)
    assert uniform_test(pit, None).p < 1e-9
    assert uniform_test(pit, shared).p > 0.02


def test_coverage_comes_with_its_binomial_interval():
    pit = np.random.default_rng(8).uniform(size=(90, 1))
    found = covered(pit, None, 90)
    count = int(np.sum((pit >= 0.05) & (pit <= 0.95)))
    interval = binomtest(count, 90, 0.9).proportion_ci(0.95, "exact")
    assert (found.fraction, found.low, found.high) == (count / 90, interval.low, interval.high)


def test_neighbours_of_independent_errors_have_no_correlation():
    rng = np.random.default_rng(9)
    neighbours = (np.arange(2000)[:, None] + [1, 2]) % 2000
    assert abs(neighbour_correlation(rng.uniform(size=2000), neighbours)) < 4 / np.sqrt(2 * 2000)
    assert neighbour_correlation(np.linspace(0.01, 0.99, 2000), neighbours) > 0.95
