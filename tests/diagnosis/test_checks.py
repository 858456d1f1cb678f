"""Every finding appears where its trouble is, and nowhere on a fit that is in order."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import binomtest, kstest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metaprior import MetaGPClassifier, MetaGPRegressor, diagnose, kernels
from metaprior.baselines import MAPClassifier
from metaprior.diagnosis.checks.calibration import ks_distance, uniform_test
from metaprior.diagnosis.checks.coverage import covered
from metaprior.diagnosis.checks.residuals import neighbour_correlation

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (160, 1))
Y = np.sin(3 * X[:, 0]) + 0.1 * RNG.standard_normal(160)
SEEN, HELD = slice(0, 60), slice(60, 160)


def regressor(**settings):
    return MetaGPRegressor(**{"hidden_layer_sizes": (4,), "input_kernel": "rbf", "random_state": 0} | settings)


@pytest.fixture(scope="module")
def good():
    return regressor().fit(X[SEEN], Y[SEEN])


def flagged(diagnosis):
    return {found.name for found in diagnosis.warnings}


# --- a fit that is in order, and targets that are not what it expects ------------------


def test_a_good_fit_has_no_warnings_on_held_out_rows_and_on_its_own(good):
    held, own = diagnose(good, X[HELD], Y[HELD]), diagnose(good, X[SEEN], Y[SEEN])
    assert held.ok
    assert own.ok
    assert "100 held-out rows" in held.title
    assert "60 training rows" in own.title
    assert held["pareto_k"].numbers["k"] < 0.7
    assert held["convergence"].sentence.endswith("because the bound was flat.")


def test_targets_that_are_further_away_than_predicted_make_it_too_narrow(good):
    mean = good.predict(X[HELD])
    found = diagnose(good, X[HELD], mean + 2.5 * (Y[HELD] - mean))
    assert {"calibration", "coverage"} <= flagged(found)
    assert "too narrow" in found["calibration"].sentence
    assert "uncertain_hypers=True" in found["calibration"].advice
    numbers = found["coverage"].numbers
    assert numbers["fraction_90"] < numbers["high_90"] < 0.9


def test_targets_that_are_nearer_than_predicted_make_it_too_wide_unless_they_were_fitted(good):
    def nearer(rows):
        mean = good.predict(X[rows])
        return mean + 0.2 * (Y[rows] - mean)

    found = diagnose(good, X[HELD], nearer(HELD))
    assert "too wide" in found["calibration"].sentence
    assert found["coverage"].severity == "note"
    own = diagnose(good, X[SEEN], nearer(SEEN), rows="training")
    assert own["calibration"].severity == "ok"
    assert "as they usually do" in own["calibration"].sentence


def test_targets_that_are_all_higher_are_told_as_such(good):
    found = diagnose(good, X[HELD], Y[HELD] + 0.15)
    assert "too low: targets lie above" in found["calibration"].sentence


def test_shuffled_targets_are_worse_than_a_constant(good):
    found = diagnose(good, X[HELD], RNG.permutation(Y[HELD]))
    assert "worse than a constant" in found["skill"].sentence
    numbers = found["skill"].numbers
    assert numbers["gain"] == pytest.approx(numbers["constant_nll"] - numbers["nll"])


def test_errors_that_are_smooth_in_the_inputs_are_structure(good):
    found = diagnose(good, X[HELD], Y[HELD] + 0.3 * np.sin(8 * X[HELD, 0]))
    assert "residuals" in flagged(found)
    assert found["residuals"].numbers["correlation"] > 0.5


# --- fits that are not in order ----------------------------------------------------------


def test_a_fit_that_was_cut_short_has_not_converged():
    found = diagnose(regressor(max_iter=20).fit(X[SEEN], Y[SEEN]), X[HELD], Y[HELD])["convergence"]
    assert found.severity == "warning"
    assert found.advice == "Raise max_iter (20 now)."


def test_noise_alone_has_no_signal():
    y = np.random.default_rng(3).standard_normal(160)
    found = diagnose(regressor().fit(X[SEEN], y[SEEN]), X[HELD], y[HELD])
    assert {"signal", "skill"} <= flagged(found)
    assert "calibration" not in flagged(found)


def test_a_lengthscale_beyond_the_data_switches_the_input_kernel_off():
    kernel = kernels.RBF(2000.0, fixed=("lengthscale",))
    found = diagnose(regressor(input_kernel=kernel, max_iter=150).fit(X[SEEN], Y[SEEN]), X[HELD], Y[HELD])
    assert found["input_kernel"].severity == "warning"
    assert "the model is the global one" in found["input_kernel"].sentence


def test_a_bound_that_binds_is_named_and_one_that_does_not_is_not():
    kernel = kernels.RBF([1.0, 1.0], bounds={"lengthscale": (3.0, 100.0)}).on(0, 1)
    wide = np.column_stack([X, RNG.standard_normal(160)])
    model = regressor(input_kernel=kernel, max_iter=150).fit(wide[SEEN], Y[SEEN])
    found = diagnose(model, wide[HELD], Y[HELD])["bounds"]
    assert found.severity == "warning"
    assert "input_kernel__inner__lengthscale for column 0 is at its lower bound 3" in found.sentence
    assert "column 1 is at its lower" not in found.sentence


def test_a_period_longer_than_the_data_is_told():
    model = regressor(input_kernel=kernels.Periodic(period=9.0), max_iter=20).fit(X[SEEN], Y[SEEN])
    found = diagnose(model, X[HELD], Y[HELD])["bounds"]
    assert "is longer than the data" in found.sentence


def test_roll_backs_and_jitter_are_told(good):
    changed = regressor()
    changed.__dict__ = {**vars(good), "n_roll_backs_": 2}
    assert "learning_rate_init" in diagnose(changed, X[HELD], Y[HELD])["numerics"].advice
    changed.__dict__ = {**vars(good), "jitter_": 0.1}
    assert "n_inducing" in diagnose(changed, X[HELD], Y[HELD])["numerics"].advice


def test_hidden_units_that_add_nothing_are_counted(good):
    log_scale = np.array(good.model_.weights.log_scale)
    log_scale[-1] = [-20.0, 0.0]
    weights = dataclasses.replace(good.model_.weights, log_scale=log_scale)
    changed = regressor()
    changed.__dict__ = {**vars(good), "model_": dataclasses.replace(good.model_, weights=weights)}
    found = diagnose(changed, X[HELD], Y[HELD])["hidden_units"]
    assert found.severity == "note"
    assert found.numbers["share"] < 1e-6


# --- other estimators and targets ---------------------------------------------------------


def test_probabilities_that_are_too_sure_are_overconfident():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((400, 6))
    labels = np.where(rng.uniform(size=400) < 1 / (1 + np.exp(-x[:, 0])), "yes", "no")
    model = MAPClassifier((30,), prior_scale=10.0, max_iter=400, early_stopping=False, random_state=0)
    found = diagnose(model.fit(x[:50], labels[:50]), x[50:], labels[50:])
    assert "overconfident" in found["calibration"].sentence
    assert found["calibration"].numbers["confidence"] > found["calibration"].numbers["accuracy"]
    left = {own.name for own in found.left_out}
    assert {"coverage", "residuals", "pareto_k", "hidden_units", "input_kernel"} <= left


def test_a_classifier_is_calibrated_and_its_posterior_needs_its_training_rows():
    x = RNG.standard_normal((120, 2))
    labels = (x[:, 0] + 0.8 * RNG.standard_normal(120) > 0).astype(int)
    model = MetaGPClassifier((3,), max_iter=300, random_state=0).fit(x[:60], labels[:60])
    held = diagnose(model, x[60:], labels[60:])
    assert held["calibration"].severity == "ok"
    assert "rows='training'" in next(own.reason for own in held.left_out if own.name == "pareto_k")
    assert np.isfinite(diagnose(model, x[:60], labels[:60], rows="training")["pareto_k"].numbers["k"])
    with pytest.raises(ValueError, match=r"y: expected classes among \[0, 1\]; got \[7\]"):
        diagnose(model, x[:60], np.full(60, 7))


def test_a_scikit_learn_regressor_in_a_pipeline_is_judged_by_its_predictions():
    model = make_pipeline(StandardScaler(), GaussianProcessRegressor(alpha=1e-12)).fit(X[SEEN], Y[SEEN])
    found = diagnose(model, X[HELD], Y[HELD])
    assert "calibration" in flagged(found)
    assert "convergence" in {own.name for own in found.left_out}


def test_several_targets_are_judged_by_the_worst(good):
    both = np.column_stack([Y, RNG.standard_normal(160)])
    found = diagnose(regressor(max_iter=200).fit(X[SEEN], both[SEEN]), X[HELD], both[HELD])
    assert "of target 1, the least of 2" in found["signal"].sentence


def test_rows_are_training_rows_or_held_out_rows(good):
    with pytest.raises(ValueError, match="rows: expected"):
        diagnose(good, X[HELD], Y[HELD], rows="test")


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
