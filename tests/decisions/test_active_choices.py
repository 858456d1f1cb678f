"""Which rows of a pool are chosen: batches as their slow twins choose them, and acquisitions."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr

from decisions.active_pools import LABELS, SMALL, X, Y, rng
from metaprior import MetaGPClassifier, MetaGPRegressor
from metaprior.decisions import (
    choose,
    entropy,
    greedy_classes,
    greedy_covariance,
    mutual_information,
    prediction_information,
    variance,
)
from metaprior.decisions.active import batch
from metaprior.predictive import Predictive
from metaprior.predictive.base import Moments
from metaprior.predictive.from_sklearn import ClassProbabilities, GaussianMarginals

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


class Drawn(Predictive):
    """A distribution that is given by its draws, [S, N], [S, N, K] or class probabilities [S, N, C]."""

    def __init__(self, draws, noise=None):
        draws = np.asarray(draws, float)
        super().__init__(np.zeros(1), np.ones(1), flat=draws.ndim == 2)
        self._given, self._noise = draws[..., None] if draws.ndim == 2 else draws, noise

    num_draws = property(lambda self: len(self._given))
    is_classification = property(lambda self: self._noise is None)

    def __len__(self):
        return self._given.shape[1]

    def _standard_moments(self):
        mean, noise = np.mean(self._given, axis=0), 0.0 if self._noise is None else np.asarray(self._noise, float)
        noise = noise[..., None] if self._flat and np.ndim(noise) else noise
        return Moments(mean, np.var(self._given, axis=0), np.broadcast_to(noise, mean.shape))

    def _standard_draws(self):
        return self._given

    def _standard_covariance(self):
        centred = self._given - np.mean(self._given, axis=0)
        return np.einsum("snk,smk->knm", centred, centred) / len(centred)

    _standard_entropies = _standard_quantile = _standard_log_prob = _standard_cdf = _standard_crps = None
    _standard_sample = _standard_joint_log_prob = _at_rows = None


# --- batches for regression -------------------------------------------------------


def draws_of(covariance):
    """Return 2N draws whose mean is 0 and whose covariance is exactly this."""
    root = np.sqrt(len(covariance)) * np.linalg.cholesky(covariance).T
    return np.concatenate([root, -root])


def covariance(num_rows, seed):
    x = rng(seed).uniform(0, 3, num_rows)
    scale = rng(seed + 1).uniform(0.5, 2, num_rows)
    return np.outer(scale, scale) * np.exp(-((x[:, None] - x) ** 2)) + 1e-6 * np.eye(num_rows)


def dense_information(cov, noise, rows):
    """I(y_B; f) = log det(I + noise^-1 C_BB) / 2."""
    part = cov[np.ix_(rows, rows)] / noise[rows, None]
    return 0.5 * np.linalg.slogdet(np.eye(len(rows)) + part)[1]


def dense_greedy(informations, num_rows, n_queries):
    """Choose by trying every row; return rows and the joint information after each."""
    rows, found = [], []
    for _ in range(n_queries):
        tried = {i: informations([*rows, i]) for i in range(num_rows) if i not in rows}
        rows.append(max(tried, key=tried.get))
        found.append(tried[rows[-1]])
    return rows, np.array(found)


def test_greedy_covariance_equals_trying_every_determinant():
    cov, noise = covariance(20, 3), rng(5).uniform(0.01, 0.3, 20)
    rows, information = dense_greedy(lambda b: dense_information(cov, noise, b), 20, 7)
    choice = greedy_covariance(Drawn(draws_of(cov), noise), 7)
    assert choice.rows.tolist() == rows
    assert_allclose(np.cumsum(choice.values), information, rtol=1e-9)


def test_greedy_covariance_adds_the_information_of_several_outputs():
    covs, noise = [covariance(12, 3), covariance(12, 8)], rng(5).uniform(0.01, 0.3, (12, 2))
    total = dense_greedy(lambda b: sum(dense_information(c, noise[:, k], b) for k, c in enumerate(covs)), 12, 5)
    choice = greedy_covariance(Drawn(np.stack([draws_of(c) for c in covs], axis=2), noise), 5)
    assert choice.rows.tolist() == total[0]
    assert_allclose(np.cumsum(choice.values), total[1], rtol=1e-9)


def test_greedy_covariance_takes_the_row_whose_variance_given_the_others_is_largest_under_equal_noise():
    cov, noise = covariance(15, 1), 0.04
    chosen = greedy_covariance(Drawn(draws_of(cov), noise), 4).rows.tolist()
    for count in range(1, 4):
        b = chosen[:count]
        solved = np.linalg.solve(cov[np.ix_(b, b)] + noise * np.eye(count), cov[b])
        left = np.diag(cov - cov[:, b] @ solved).copy()
        left[b] = -np.inf
        assert chosen[count] == np.argmax(left)


def test_a_batch_does_not_ask_twice_what_one_answer_tells():
    """Rows 0 and 1 are the same place, and the least known one."""
    cov = np.diag([4.0, 4.0, 1.0, 0.5])
    cov[0, 1] = cov[1, 0] = 4.0 - 1e-9
    predictive = Drawn(draws_of(cov), 0.01)
    assert choose("variance", predictive, 2, rng()).rows.tolist() == [0, 1]
    assert greedy_covariance(predictive, 3).rows.tolist() == [0, 2, 3]


def test_a_function_that_is_known_has_nothing_to_tell():
    choice = greedy_covariance(Drawn(np.ones((6, 4)), 0.1), 3)
    assert choice.rows.tolist() == [0, 1, 2]
    assert_array_equal(choice.values, 0)


# --- batches for classes ----------------------------------------------------------


def class_draws(num_draws, num_rows, num_classes, seed):
    return rng(seed).dirichlet(np.full(num_classes, 0.4), (num_draws, num_rows))


def enumerated_information(p, rows):
    """I(y_B; f) = H[y_B] - E H[y_B | f], over every set of answers."""
    joint = [
        np.mean(np.prod([p[:, row, c] for row, c in zip(rows, answers, strict=True)], axis=0))
        for answers in itertools.product(range(p.shape[2]), repeat=len(rows))
    ]
    return np.sum(entr(joint)) - np.sum(np.mean(np.sum(entr(p[:, rows]), axis=2), axis=0))


@pytest.mark.parametrize("num_classes", [2, 3])
def test_greedy_classes_equals_trying_every_set_of_answers(num_classes):
    p = class_draws(9, 8, num_classes, 1)
    rows, information = dense_greedy(lambda b: enumerated_information(p, b), 8, 4)
    choice = greedy_classes(Drawn(p), 4, rng())
    assert choice.rows.tolist() == rows
    assert_allclose(np.cumsum(choice.values), information, rtol=1e-9)


def test_answers_that_cannot_be_are_left_out():
    p = np.eye(3)[[[0, 1], [0, 2], [1, 1]]]  # every draw is sure of both classes
    choice = greedy_classes(Drawn(p), 2, rng())
    assert_allclose(np.sum(choice.values), np.log(3), rtol=1e-12)  # together they tell the draw
    assert np.all(np.isfinite(choice.values))


def test_drawn_sets_of_answers_are_right_on_average():
    """The gain of a fifth row after four others, 16 drawn sets instead of 81, against the exact one."""
    p, before = class_draws(12, 6, 3, 4), [0, 1, 2, 3]
    exact = [enumerated_information(p, [*before, i]) - enumerated_information(p, before) for i in (4, 5)]

    def gains(seed):
        state, generator = (np.full((12, 1), 1 / 12), np.ones(1)), rng(seed)
        for row in before:
            state = batch._answered(*state, p[:, row], generator, 16)
        assert state[0].shape == (12, 16)
        return batch._information(*state, p)[4:]

    found = np.array([gains(seed) for seed in range(400)])
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(error < 0.01)
    assert np.all(np.abs(np.mean(found, axis=0) - exact) < 4 * error)


def test_long_batches_of_classes_tell_no_more_than_which_draw_it_is():
    """Fifty answers by 64 drawn sets: nothing underflows, no gain is negative, and on average they add up to log S."""
    p = class_draws(16, 60, 5, 2)
    choice = greedy_classes(Drawn(p), 50, rng(), n_configurations=64)
    assert len(set(choice.rows.tolist())) == 50
    assert np.all(choice.values > -1e-12)

    def total(seed):
        state, generator, gains = (np.full((16, 1), 1 / 16), np.ones(1)), rng(seed), []
        for row in range(50):
            gains.append(batch._information(*state, p)[row])
            state = batch._answered(*state, p[:, row], generator, 64)
        return np.sum(gains)

    found = [total(seed) for seed in range(40)]
    error = np.std(found, ddof=1) / np.sqrt(40)
    assert 0.9 * np.log(16) < np.mean(found) < np.log(16) + 4 * error


# --- acquisitions -----------------------------------------------------------------


@pytest.fixture(scope="module")
def regression():
    return MetaGPRegressor(**SMALL, random_state=0, input_kernel=None).fit(X[:16], Y[:16]).predict_distribution(X)


@pytest.fixture(scope="module")
def classification():
    return MetaGPClassifier(**SMALL, random_state=0, input_kernel=None).fit(X[:16], LABELS[:16]).predict_distribution(X)


def test_acquisitions_are_what_the_distribution_answers(regression, classification):
    assert_array_equal(variance(regression), regression.epistemic_variance)
    assert_array_equal(variance(classification), classification.epistemic_variance.sum(axis=1))
    for predictive in (regression, classification):
        assert_array_equal(entropy(predictive), predictive.entropy)
        assert_array_equal(mutual_information(predictive), predictive.mutual_information)


def test_the_first_row_of_a_batch_has_the_largest_information_of_its_own(regression, classification):
    first = choose("joint_information", classification, 1, rng())
    # of the functions that the choice looks at, which are drawn jointly over the rows
    p = classification.draws()
    own = np.sum(entr(p.mean(axis=0)), axis=1) - np.sum(entr(p), axis=2).mean(axis=0)
    assert_array_equal(first.rows, np.argmax(own))
    assert_allclose(first.values, np.max(own), rtol=1e-9)
    gains = 0.5 * np.log1p(regression.epistemic_variance / regression.aleatoric_variance)
    first = choose("joint_information", regression, 1, rng())
    assert_array_equal(first.rows, np.argmax(gains))
    assert_allclose(first.values, np.max(gains), rtol=1e-9)


def dense_prediction_information(cov, noise):
    """The mean over the other rows of I[y; y'] = H[y] + H[y'] - H[y, y'], from the determinants."""
    observed, found = cov + np.diag(noise), np.zeros(len(cov))
    for i, j in itertools.permutations(range(len(cov)), 2):
        pair = observed[np.ix_([i, j], [i, j])]
        found[i] += 0.5 * np.log(pair[0, 0] * pair[1, 1] / np.linalg.det(pair)) / (len(cov) - 1)
    return found


def test_prediction_information_is_the_mean_over_pairs_of_answers():
    cov, noise = covariance(12, 3), rng(5).uniform(0.01, 0.3, 12)
    found = prediction_information(Drawn(draws_of(cov), noise))
    assert_allclose(found, dense_prediction_information(cov, noise), rtol=1e-8)


def test_prediction_information_of_several_outputs_is_their_sum():
    parts = [(covariance(8, seed), rng(seed).uniform(0.1, 0.2, 8)) for seed in (1, 2)]
    draws = np.stack([draws_of(cov) for cov, _ in parts], axis=2)
    found = prediction_information(Drawn(draws, np.stack([noise for _, noise in parts], axis=1)))
    assert_allclose(found, sum(dense_prediction_information(*part) for part in parts), rtol=1e-8)


def test_a_row_unlike_all_others_is_known_least_and_tells_least_about_the_others():
    cov = np.full((6, 6), 0.9) + 0.1 * np.eye(6)
    cov[5, :5] = cov[:5, 5] = 0
    cov[5, 5] = 4
    predictive = Drawn(draws_of(cov), np.full(6, 0.1))
    assert np.argmax(variance(predictive)) == 5
    assert np.argmin(prediction_information(predictive)) == 5


def test_variance_of_an_estimator_from_elsewhere_is_all_of_it():
    assert_allclose(variance(GaussianMarginals(np.zeros(3), np.array([1.0, 2.0, 3.0]))), [1, 4, 9])
    assert_allclose(variance(ClassProbabilities(np.array([[0.5, 0.5], [0.9, 0.1]]))), [0.5, 0.18])


def test_the_largest_numbers_are_chosen_and_the_first_of_equal_ones(regression):
    values = np.zeros(40)
    values[[7, 30, 3]] = 2.0, 1.0, 1.0
    choice = choose(lambda predictive: values, regression, 4, rng())
    assert choice.rows.tolist() == [7, 3, 30, 0]
    assert choice.values.tolist() == [2, 1, 1, 0]


def test_random_rows_are_all_alike():
    predictive = Drawn(np.zeros((2, 5)), 0.1)
    counts = np.bincount([choose("random", predictive, 1, rng(seed)).rows[0] for seed in range(2000)], minlength=5)
    assert np.all(np.abs(counts - 400) < 4 * np.sqrt(2000 * 0.2 * 0.8))
    assert sorted(choose("random", predictive, 9, rng()).rows.tolist()) == list(range(5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: mutual_information(GaussianMarginals(np.zeros(2), np.ones(2))), "draws.*got GaussianMarginals"),
        (lambda p: variance(Drawn(np.zeros((1, 4)), 0.1)), "at least 2 function draws; got 1"),
        (lambda p: greedy_classes(p, 2, rng()), "this is a regression; use greedy_covariance"),
        (lambda p: greedy_covariance(Drawn(class_draws(3, 4, 2, 0)), 2), "use greedy_classes"),
        (lambda p: prediction_information(Drawn(class_draws(3, 4, 2, 0))), "classes have no covariance"),
        (lambda p: choose("best", p, 1, rng()), "acquisition: expected one of .*'entropy'.*got 'best'"),
        (lambda p: choose(lambda q: np.ones(3), p, 1, rng()), r"expected 4 numbers, one per row.*shape \(3,\)"),
        (lambda p: choose(lambda q: np.full(4, np.nan), p, 1, rng()), "none of them NaN"),
    ],
)
def test_what_cannot_be_chosen_by_is_told(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(Drawn(np.zeros((3, 4)), 0.1))
