"""Metrics: every score against its closed form, or against loops that spell out its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy import special, stats

from chosen import EPS, few, numbers
from metaprior import MetaGPClassifier, MetaGPRegressor, metrics
from metaprior.predictive.from_sklearn import ClassProbabilities, GaussianMarginals

RNG = np.random.default_rng(0)
NUM = 4000
SMALL = {"hidden_layer_sizes": (3,), "n_inducing": 4, "n_predict_draws": 8, "max_iter": 20, "random_state": 0}


class Counts:
    """A forecast of counts: Poisson with known rates."""

    is_classification = False

    def __init__(self, rate):
        self.mean, self.each = rate, stats.poisson(rate)
        self.cdf, self.log_prob, self.entropy = self.each.cdf, self.each.logpmf, self.each.entropy()

    def crps(self, y):
        counts = np.arange(400)[:, None]
        return np.sum((self.each.cdf(counts) - (counts >= y)) ** 2, axis=0)


# --- targets that have an order ---------------------------------------------------


def test_rmse_is_the_root_of_the_mean_square_and_a_mean_over_outputs():
    assert metrics.rmse(np.array([0.0, 0.0]), np.array([3.0, 4.0])) == pytest.approx(np.sqrt(12.5), rel=1e-14)
    y = np.array([[3.0, 1.0], [4.0, 1.0]])
    assert metrics.rmse(np.zeros((2, 2)), y) == pytest.approx((np.sqrt(12.5) + 1) / 2, rel=1e-14)


def test_calibration_error_is_the_mean_gap_between_levels_and_shares():
    pit = RNG.beta(2, 3, 57)
    gaps = [abs(sum(p <= level for p in pit) / len(pit) - level) for level in np.linspace(0.05, 0.95, 19)]
    assert metrics.calibration_error(pit, pit) == pytest.approx(np.mean(gaps), rel=1e-12)


def test_calibration_error_of_several_outputs_is_the_mean_of_theirs():
    pit = RNG.uniform(size=(40, 2)) ** 2
    each = [metrics.calibration_error(column, column) for column in pit.T]
    assert metrics.calibration_error(pit, pit) == pytest.approx(np.mean(each), rel=1e-12)


def test_calibration_error_of_certain_and_wrong_forecasts_is_a_half():
    assert metrics.calibration_error(np.zeros(9), np.zeros(9)) == pytest.approx(0.5)
    assert metrics.calibration_error(np.ones(9), np.ones(9)) == pytest.approx(0.5)


@pytest.mark.parametrize("rate", [0.3, 2.0, 30.0])
def test_true_forecasts_of_counts_are_calibrated(rate):
    y = RNG.poisson(rate, NUM)
    each = stats.poisson(rate)
    bound = 4 * 0.5 / np.sqrt(NUM)  # four standard errors of a share
    assert metrics.calibration_error(each.cdf(y - 1), each.cdf(y)) < bound
    wrong = stats.poisson(2 * rate)
    assert metrics.calibration_error(wrong.cdf(y - 1), wrong.cdf(y)) > 2 * bound


def test_a_jump_counts_for_the_part_of_it_below_the_level():
    below, at = np.array([0.1, 0.3]), np.array([0.5, 0.9])
    gaps = [
        abs(np.mean([min(max((level - b) / (a - b), 0), 1) for b, a in zip(below, at, strict=True)]) - level)
        for level in np.linspace(0.05, 0.95, 19)
    ]
    assert metrics.calibration_error(below, at) == pytest.approx(np.mean(gaps), rel=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_coverage_is_the_share_inside_the_central_interval(level):
    y = 1.3 * RNG.standard_normal(NUM)
    low, high = stats.norm.interval(level)
    pit = stats.norm.cdf(y)
    assert metrics.coverage(pit, pit, level) == np.mean((y >= low) & (y <= high))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_coverage_of_counts_is_the_share_between_the_quantiles(level):
    y, each = RNG.poisson(3.3, NUM), stats.poisson(3.0)
    low, high = each.ppf([(1 - level) / 2, (1 + level) / 2])
    assert metrics.coverage(each.cdf(y - 1), each.cdf(y), level) == np.mean((y >= low) & (y <= high))


def test_scores_of_a_true_gaussian_forecast_are_what_theory_says():
    mean, std = RNG.standard_normal(NUM), RNG.uniform(0.5, 2, NUM)
    found = metrics.scores(GaussianMarginals(mean, std), stats.norm(mean, std).rvs(random_state=1))
    error = 4 / np.sqrt(NUM)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean(std**2)), rel=error)
    assert found["nll"] == pytest.approx(np.mean(stats.norm(mean, std).entropy()), abs=error)
    assert found["crps"] == pytest.approx(np.mean(std) / np.sqrt(np.pi), rel=error)
    assert found["calibration_error"] < error
    for percent in (50, 90, 95):
        assert found[f"coverage_{percent}"] == pytest.approx(percent / 100, abs=error)


def test_a_plain_gaussian_answers_as_scipys_does():
    mean, std, y = RNG.standard_normal(30), RNG.uniform(0.5, 2, 30), RNG.standard_normal(30)
    answer, twin = GaussianMarginals(mean, std), stats.norm(mean, std)
    assert_allclose(answer.log_prob(y), twin.logpdf(y), rtol=1e-13)
    assert_allclose(answer.cdf(y), twin.cdf(y), rtol=1e-13)
    assert_allclose(answer.entropy, twin.entropy(), rtol=1e-13)
    z = (y - mean) / std
    crps = std * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    assert_allclose(answer.crps(y), crps, rtol=1e-12, atol=1e-14)


def test_a_gaussian_without_spread_has_the_absolute_error_as_crps_and_no_finite_nll():
    found = metrics.scores(GaussianMarginals(np.zeros(2), np.zeros(2)), np.array([1.0, -3.0]))
    assert found["crps"] == pytest.approx(2)
    assert found["nll"] == np.inf


def test_outputs_are_averaged_but_the_nll_is_of_all_together():
    mean, std, y = (RNG.uniform(1, 2, (20, 3)) for _ in range(3))
    together = metrics.scores(GaussianMarginals(mean, std), y)
    each = [metrics.scores(GaussianMarginals(mean[:, k], std[:, k]), y[:, k]) for k in range(3)]
    for name in together.keys() - {"nll"}:
        assert together[name] == pytest.approx(np.mean([s[name] for s in each]), rel=1e-12)
    assert together["nll"] == pytest.approx(np.sum([s["nll"] for s in each]), rel=1e-12)


def test_counts_are_inside_their_interval_at_both_ends():
    y = np.array([0, 1, 2, 3, 4, 9])
    found = metrics.scores(Counts(np.full(6, 1.0)), y)
    low, high = stats.poisson(1.0).ppf([0.25, 0.75])
    assert found["coverage_50"] == np.mean((y >= low) & (y <= high))
    below, at = stats.poisson(1.0).cdf(y - 1), stats.poisson(1.0).cdf(y)
    assert found["calibration_error"] == pytest.approx(metrics.calibration_error(below, at), rel=1e-12)


# --- classes ----------------------------------------------------------------------

P = special.softmax(2 * RNG.standard_normal((200, 3)), axis=1)
LABELS = RNG.integers(3, size=200)


def test_class_scores_equal_loops_over_rows():
    found = metrics.scores(ClassProbabilities(P), LABELS)
    rows = list(zip(P, LABELS, strict=True))
    assert found["accuracy"] == np.mean([np.argmax(p) == c for p, c in rows])
    assert found["nll"] == pytest.approx(-np.mean([np.log(p[c]) for p, c in rows]), rel=1e-12)
    assert found["brier"] == pytest.approx(np.mean([np.sum((p - np.eye(3)[c]) ** 2) for p, c in rows]), rel=1e-12)
    assert found["entropy"] == pytest.approx(np.mean([stats.entropy(p) for p in P]), rel=1e-12)


def test_class_calibration_error_weighs_the_gap_of_every_bin_by_its_rows():
    confidence, right = P.max(1), P.argmax(1) == LABELS
    total = 0.0
    for b in range(15):
        held = (confidence > b / 15) & (confidence <= (b + 1) / 15)
        if held.any():
            total += held.mean() * abs(confidence[held].mean() - right[held].mean())
    assert metrics.scores(ClassProbabilities(P), LABELS)["calibration_error"] == pytest.approx(total, rel=1e-12)


def test_certain_and_right_classes_score_nought():
    found = metrics.scores(ClassProbabilities(np.eye(3)[LABELS]), LABELS)
    assert found == {"accuracy": 1.0, "nll": 0.0, "brier": 0.0, "calibration_error": 0.0, "entropy": 0.0}


# --- inside and outside -----------------------------------------------------------


def test_auroc_is_the_share_of_pairs_in_order_with_ties_counted_half():
    inside, outside = RNG.integers(6, size=31), RNG.integers(2, 9, size=17)
    pairs = [(o > i) + 0.5 * (o == i) for i in inside for o in outside]
    assert metrics.auroc(inside, outside) == pytest.approx(np.mean(pairs), rel=1e-12)
    assert metrics.auroc(inside, inside) == pytest.approx(0.5)
    assert metrics.auroc(np.zeros(3), np.ones(2)) == 1


def test_auroc_without_rows_is_refused():
    with pytest.raises(ValueError, match="auroc: expected rows inside and outside; got 0 and 2"):
        metrics.auroc([], [1, 2])


# --- from the estimators ----------------------------------------------------------

X = RNG.uniform(-2, 2, (40, 1))


@pytest.mark.parametrize(
    "likelihood", ["gaussian", *(pytest.param(n, marks=pytest.mark.slow) for n in ("student_t", "poisson"))]
)
@pytest.mark.slow
def test_scores_are_means_of_what_the_predictive_answers(likelihood):
    y = RNG.poisson(np.exp(1 + X[:, 0])).astype(float)
    predictive = MetaGPRegressor(**SMALL, likelihood=likelihood, input_kernel=None).fit(X, y).predict_distribution(X)
    found = metrics.scores(predictive, y)
    assert found["rmse"] == pytest.approx(np.sqrt(np.mean((predictive.mean - y) ** 2)), rel=1e-12)
    assert found["nll"] == pytest.approx(-np.mean(predictive.log_prob(y)), rel=1e-12)
    assert found["crps"] == pytest.approx(np.mean(predictive.crps(y)), rel=1e-12)
    for percent in (50, 90, 95):
        low, high = predictive.interval(percent / 100)
        assert found[f"coverage_{percent}"] == np.mean((y >= low) & (y <= high))


def test_a_column_of_targets_scores_as_the_vector_does():
    y = np.sin(X[:, 0])
    predictive = MetaGPRegressor(**SMALL, input_kernel=None).fit(X, y).predict_distribution(X)
    assert metrics.scores(predictive, y[:, None]) == metrics.scores(predictive, y)


def test_classes_are_scored_by_their_labels_and_words_by_their_numbers_too():
    labels = np.where(X[:, 0] > 0, "yes", "no")
    model = MetaGPClassifier(**SMALL, input_kernel=None).fit(X, labels)
    predictive, numbers = model.predict_distribution(X), np.searchsorted(model.classes_, labels)
    found, plain = (
        metrics.scores(predictive, numbers),
        metrics.scores(ClassProbabilities(predictive.probabilities), numbers),
    )
    assert found == pytest.approx(plain, rel=1e-9)
    assert metrics.scores(predictive, labels) == found
    assert found["accuracy"] == model.score(X, labels)


@pytest.mark.parametrize("wrong", [np.full(200, 3), np.full(200, -1), np.full(200, 0.5), np.full(200, "a")])
def test_labels_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match=r"scores: expected labels among 0, 1, 2, as in `classes_`; got .* at row 0"):
        metrics.scores(ClassProbabilities(P), wrong)


def test_targets_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"expected targets of shape \(4,\), like the predictions; got \(5,\)"):
        metrics.scores(GaussianMarginals(np.zeros(4), np.ones(4)), np.zeros(5))
    with pytest.raises(ValueError, match="expected 200 labels, one per row; got 4"):
        metrics.scores(ClassProbabilities(P), np.zeros(4))


ROWS = st.lists(st.integers(-20, 20), min_size=1, max_size=8).map(lambda values: np.array(values, np.float64))


@few
@given(inside=ROWS, outside=ROWS)
def test_auroc_is_a_share_that_turns_round_with_its_rows_and_sees_their_order_alone(inside, outside):
    found = metrics.auroc(inside, outside)
    assert 0 <= found <= 1
    assert found + metrics.auroc(outside, inside) == pytest.approx(1, abs=4 * EPS)
    assert metrics.auroc(np.exp(inside / 10) - 3, np.exp(outside / 10) - 3) == found


@few
@given(weights=numbers(0.0, 1.0, (5, 3)), y=arrays(np.int64, 5, elements=st.integers(0, 2)))
def test_scores_of_classes_stay_in_their_ranges(weights, y):
    p = (weights + 1e-3) / np.sum(weights + 1e-3, axis=1, keepdims=True)
    assert 0 <= metrics.brier(p, y) <= 2
    assert 0 <= metrics.expected_calibration_error(p, y) <= 1
    assert metrics.brier(np.eye(3)[y], y) == metrics.expected_calibration_error(np.eye(3)[y], y) == 0
