"""Active learning: batches as their slow twins choose them, loops as written by hand, and loops that survive a kill."""

import builtins
import importlib.util
import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import optax
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import entr
from scipy.stats import ttest_rel
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from metaprior import MetaGPClassifier, MetaGPRegressor, kernels, load
from metaprior.active import (
    PoolLoop,
    batch,
    choose,
    entropy,
    greedy_classes,
    greedy_covariance,
    mutual_information,
    variance,
)
from metaprior.baselines import ExactGPRegressor, MAPRegressor
from metaprior.decisions.warm_start import RefittedModel
from metaprior.io.saving import UnsavableError
from metaprior.predictive import Predictive
from metaprior.predictive.base import Moments
from metaprior.predictive.from_sklearn import ClassProbabilities, GaussianMarginals

ROOT = Path(__file__).parents[1]
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (40, 1))
Y = np.sin(3 * X[:, 0]) + 0.05 * RNG.standard_normal(40)
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 1.0])]
TEST = (np.linspace(-2, 2, 30)[:, None], np.sin(3 * np.linspace(-2, 2, 30)))
SMALL = {"hidden_layer_sizes": (4,), "n_inducing": 4, "n_predict_draws": 8, "max_iter": 20}

pytestmark = pytest.mark.filterwarnings("ignore:the median distance", "ignore:.*close to the specified")


def rng(seed=0):
    return np.random.default_rng(seed)


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

    _standard_entropies = _standard_quantile = _standard_log_prob = _standard_cdf = _standard_crps = None
    _standard_sample = None


class Distance(RegressorMixin, BaseEstimator):
    """A regressor from elsewhere: the nearest target, as unsure as the nearest row is far."""

    fits = 0

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        Distance.fits += 1
        self.data_ = X, y
        return self

    def predict(self, X, return_std=False):
        gap = np.abs(X[:, None] - self.data_[0]).sum(axis=2)
        mean = self.data_[1][np.argmin(gap, axis=1)]
        return (mean, np.min(gap, axis=1) + 0.1) if return_std else mean


class Frequencies(ClassifierMixin, BaseEstimator):
    """A classifier from elsewhere: the shares of the classes, the same for all rows."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / len(y)
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


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


def dense_greedy(informations, num_rows, num_queries):
    """Choose by trying every row; return rows and the joint information after each."""
    rows, found = [], []
    for _ in range(num_queries):
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
    choice = greedy_classes(Drawn(p), 50, rng(), num_configurations=64)
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
    return MetaGPRegressor(**SMALL, random_state=0).fit(X[:16], Y[:16]).predict_distribution(X)


@pytest.fixture(scope="module")
def classification():
    return MetaGPClassifier(**SMALL, random_state=0).fit(X[:16], LABELS[:16]).predict_distribution(X)


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
        (lambda p: choose("best", p, 1, rng()), "acquisition: expected one of .*'entropy'.*got 'best'"),
        (lambda p: choose(lambda q: np.ones(3), p, 1, rng()), r"expected 4 numbers, one a row.*shape \(3,\)"),
        (lambda p: choose(lambda q: np.full(4, np.nan), p, 1, rng()), "none of them NaN"),
    ],
)
def test_what_cannot_be_chosen_by_is_told(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(Drawn(np.zeros((3, 4)), 0.1))


# --- the loop ---------------------------------------------------------------------


def test_questions_are_those_of_a_loop_written_by_hand():
    gp = GaussianProcessRegressor(RBF() + WhiteKernel(0.01), random_state=0)
    loop = PoolLoop(gp, X, random_state=1)
    loop.run(Y, 9)
    known = loop.rows[:5].tolist()
    for row in loop.rows[5:]:
        free = [i for i in range(40) if i not in known]
        std = clone(gp).fit(X[known], Y[known]).predict(X[free], return_std=True)[1]
        assert row == free[np.argmax(std)]
        known.append(int(row))


CASES = {
    "exact gp": (ExactGPRegressor(n_restarts=0), Y, "joint_information"),
    "metagp": (MetaGPRegressor(**SMALL), Y, "joint_information"),
    "classes": (MetaGPClassifier(**SMALL), LABELS, "joint_information"),
    "bald": (MetaGPClassifier(**SMALL), LABELS, "mutual_information"),
    "pipeline": (make_pipeline(StandardScaler(), ExactGPRegressor(n_restarts=0)), Y, "variance"),
    "gp from elsewhere": (GaussianProcessRegressor(RBF() + WhiteKernel(0.01)), Y, "variance"),
    "classifier from elsewhere": (GaussianProcessClassifier(), LABELS, "entropy"),
}


@pytest.mark.parametrize("name", CASES)
def test_any_estimator_that_says_how_sure_it_is_can_ask(name):
    """No row twice, the same rows from the same seed, and the estimator stays as it was."""
    estimator, answers, acquisition = CASES[name]
    before = str(estimator.get_params())
    runs = []
    for _ in range(2):
        loop = PoolLoop(estimator, X, acquisition=acquisition, num_queries=3, num_start=6, random_state=5)
        history = loop.run(answers, 12)
        assert len(set(loop.rows.tolist())) == 12 == len(history)
        runs.append((loop.rows, history["acquisition"]))
    assert_array_equal(runs[0][0], runs[1][0])
    assert_array_equal(runs[0][1], runs[1][1])
    assert str(estimator.get_params()) == before
    assert not [key for key in vars(estimator) if key.endswith("_")]


def test_another_seed_asks_for_other_rows_first_and_another_acquisition_for_the_same():
    def first(seed, acquisition="variance"):
        return PoolLoop(Distance(), X, acquisition=acquisition, random_state=seed).ask().rows.tolist()

    assert first(0) != first(1)
    assert first(0) == first(0, "random")


def test_a_question_is_asked_until_it_is_answered():
    loop = PoolLoop(Distance(), X, num_queries=3, num_start=2, random_state=0)
    question = loop.ask()
    assert_array_equal(loop.ask().rows, question.rows)
    assert_array_equal(question.X, X[question.rows])
    loop.tell(Y[question.rows])
    second = loop.ask()
    assert len(second.rows) == 3
    loop.tell(Y[second.rows[1]], rows=second.rows[1])
    assert_array_equal(loop.ask().rows, second.rows[[0, 2]])
    assert_array_equal(loop.ask().values, second.values[[0, 2]])
    loop.skip()
    assert not set(loop.ask().rows.tolist()) & set(second.rows.tolist())


def test_answers_to_what_was_not_asked_are_welcome():
    loop = PoolLoop(Distance(), X, num_start=2, random_state=0)
    loop.tell(Y[[4, 9]], rows=[4, 9])
    assert_array_equal(loop.rows, [4, 9])
    assert np.isfinite(loop.ask().values).all()  # the first model is there
    assert loop.history["acquisition"].isna().all()


def test_a_pool_comes_to_its_end():
    loop = PoolLoop(Distance(), X[:7], num_queries=4, random_state=0)
    assert len(loop.run(Y[:7], 100)) == 7
    with pytest.raises(ValueError, match="all 7 rows of the pool are answered or skipped"):
        loop.ask()


def test_random_rows_are_asked_for_until_there_are_two_classes():
    loop = PoolLoop(Frequencies(), X, acquisition="entropy", num_start=2, num_queries=3, random_state=0)
    loop.tell(["a", "a"], rows=loop.ask().rows)
    question = loop.ask()
    assert len(question.rows) == 3
    assert np.isnan(question.values).all()
    with pytest.raises(ValueError, match="more answer"):
        _ = loop.model
    loop.tell(["a", "b", "a"])
    assert np.isfinite(loop.ask().values).all()


# --- history ----------------------------------------------------------------------


def test_history_has_the_scores_of_the_first_model_that_saw_the_answer():
    gp = GaussianProcessRegressor(RBF() + WhiteKernel(0.01), random_state=0)
    loop = PoolLoop(gp, X, num_queries=2, num_start=3, test=TEST, random_state=0)
    history = loop.run(Y, 7)
    assert list(history) == ["query", "row", "acquisition", "num_rows", "rmse", "nll", "seconds", "fresh"]
    assert history["query"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert history["num_rows"].tolist() == [3, 3, 3, 5, 5, 7, 7]
    assert history["acquisition"].isna().tolist() == [True] * 3 + [False] * 4
    assert_array_equal(history["row"], loop.rows)
    for size in (3, 5, 7):
        fit = clone(gp).fit(X[loop.rows[:size]], Y[loop.rows[:size]])
        expected = np.sqrt(np.mean((fit.predict(TEST[0]) - TEST[1]) ** 2))
        assert_allclose(history["rmse"][history["num_rows"] == size], expected, rtol=1e-12)


def test_history_has_a_line_for_the_model_before_the_first_query():
    loop = PoolLoop(Distance(), X[10:], labelled=(X[:10], Y[:10]), test=TEST, random_state=0)
    history = loop.run(Y[10:], 2)
    assert history["query"].tolist() == [0, 1, 2]
    assert history["num_rows"].tolist() == [10, 11, 12]
    assert history["row"].isna().tolist() == [True, False, False]
    assert history["rmse"].notna().all()


def test_history_knows_nothing_of_a_fit_that_is_not_made():
    loop = PoolLoop(Distance(), X, num_start=2, test=TEST, random_state=0)
    loop.tell(Y[loop.ask().rows])
    assert loop.history[["num_rows", "rmse", "fresh"]].isna().all(axis=None)
    loop.ask()
    assert loop.history[["num_rows", "rmse", "fresh"]].notna().all(axis=None)


def test_classes_are_scored_by_accuracy_and_a_class_not_met_has_no_probability():
    test = (np.zeros((4, 1)), np.array(["a", "a", "b", "c"]))
    loop = PoolLoop(Frequencies(), X, acquisition="entropy", num_start=3, test=test, random_state=0)
    loop.tell(["a", "b", "a"], rows=[0, 1, 2])
    loop.ask()
    loop.tell(["c"], rows=[3])
    loop.ask()
    assert_allclose(loop.history["accuracy"], 0.5)
    assert_array_equal(loop.history["nll"][:3], np.inf)
    assert_allclose(loop.history["nll"][3], -(2 * np.log(0.5) + 2 * np.log(0.25)) / 4)


def test_pandas_is_asked_for_where_it_is_missing(monkeypatch):
    loop, real = PoolLoop(Distance(), X), builtins.__import__

    def without_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match=r'history: .*pip install "metaprior\[compare\]"'):
        loop.run(Y, 10)
    assert not len(loop.rows)  # before the work, not after it


def test_progress_goes_to_stderr_where_it_is_asked_for(capfd):
    PoolLoop(Distance(), X, random_state=0).run(Y, 7, verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "7/7" in err
    PoolLoop(Distance(), X, random_state=0).run(Y, 7)
    assert capfd.readouterr() == ("", "")


# --- warm starts ------------------------------------------------------------------

STEADY = np.tile([-1.0, 1.0], 20)  # inputs and targets whose units stay as they are


def steady_loop(**settings):
    model = MetaGPRegressor(**SMALL)
    return PoolLoop(model, STEADY[:, None], num_start=6, random_state=0, **settings)


def tell_pairs(loop, num_pairs):
    """Answer pairs of rows, -1 and 1, and have the model fitted after each."""
    for pair in range(num_pairs):
        loop.tell(STEADY[2 * pair : 2 * pair + 2], rows=[2 * pair, 2 * pair + 1])
        if pair >= 2:
            _ = loop.model


def test_fits_go_on_until_the_rows_have_doubled():
    loop = steady_loop()
    tell_pairs(loop, 7)
    fits = loop.history.groupby("num_rows")["fresh"].first()
    assert fits.to_dict() == {6: True, 8: False, 10: False, 12: True, 14: False}
    assert loop.model.n_iter_ == 6  # 0.3 of 20
    assert loop.model.get_params()["max_iter"] == 20
    assert loop.model.get_params()["warm_start"] is False


def test_the_steps_of_a_warm_start_can_be_chosen_and_warm_starts_be_left():
    loop = steady_loop(warm_iter=3)
    tell_pairs(loop, 4)
    assert loop.model.n_iter_ == 3
    loop = steady_loop(warm_start=False)
    tell_pairs(loop, 4)
    assert loop.history["fresh"].all()


def test_a_fit_that_goes_on_is_the_estimators_own_warm_start():
    loop = steady_loop(warm_iter=7)
    tell_pairs(loop, 4)
    twin = MetaGPRegressor(**SMALL, random_state=0).fit(STEADY[:6, None], STEADY[:6])
    twin.set_params(warm_start=True, max_iter=7).fit(STEADY[:8, None], STEADY[:8])
    assert_array_equal(loop.model.predict(X), twin.predict(X))


def test_other_units_start_afresh():
    loop = steady_loop()
    tell_pairs(loop, 3)
    loop.tell([30.0, -30.0], rows=[30, 31])
    loop.ask()
    assert loop.history["fresh"].iloc[-1]


def test_a_fit_is_fresh_where_the_last_one_no_longer_suits():
    x, labels = STEADY[:, None], np.array(["a", "b"] * 20)
    model = RefittedModel(MetaGPClassifier())
    assert model.must_be_fresh(x[:6], labels[:6])
    model.fitted, model.fresh_rows = object(), 6
    assert not model.must_be_fresh(x[:8], labels[:8])
    assert model.must_be_fresh(x[:8], np.append(labels[:7], "c"))
    assert model.must_be_fresh(np.append(x[:7], [[9.0]], axis=0), labels[:8])
    assert model.must_be_fresh(x[:12], labels[:12])


@pytest.mark.slow
def test_a_class_that_is_new_is_learned():
    loop = PoolLoop(MetaGPClassifier(**SMALL), STEADY[:, None], num_start=6, acquisition="entropy", random_state=0)
    loop.tell(["a", "b"] * 3, rows=np.arange(6))
    loop.ask()
    for label, fresh in (("b", False), ("c", True)):
        loop.tell([label], rows=loop.ask().rows)
        loop.ask()
        assert loop.history["fresh"].iloc[-1] == fresh
    assert loop.model.classes_.tolist() == ["a", "b", "c"]


@pytest.fixture(scope="module")
def compiled():
    """Count the programs that are compiled from here on."""
    events = []

    def heard(event, duration, **_):
        if event.endswith("backend_compile_duration"):
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(heard)
    return events


def test_growing_data_compile_nothing(compiled):
    """From 6 to 15 rows: fits fresh and warm, scores, choices."""
    loop = PoolLoop(MetaGPRegressor(**SMALL), X, num_start=6, test=TEST, random_state=0)
    loop.run(Y, 7)
    before = len(compiled)
    loop.run(Y, 15)
    assert set(loop.history["fresh"]) == {True, False}
    assert len(compiled) == before
    jax.jit(lambda x: x + before)(1.0)
    assert len(compiled) > before  # the counter does count


# --- files ------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    return tmp_path / "loop.metaprior"


FILED = {
    "exact gp": (ExactGPRegressor(n_restarts=0), Y, "joint_information"),
    "warm": (MetaGPRegressor(**SMALL), Y, "joint_information"),
    "warm classes": (MetaGPClassifier(**SMALL), LABELS, "joint_information"),
    "from elsewhere": (Distance(), Y, "variance"),
}


@pytest.mark.parametrize("name", FILED)
def test_a_loop_that_is_loaded_after_every_call_asks_the_same(name, path):
    estimator, answers, acquisition = FILED[name]
    settings = {"acquisition": acquisition, "num_queries": 2, "num_start": 6, "random_state": 5}
    whole = PoolLoop(estimator, X, **settings)
    whole.run(answers, 14)
    loop = PoolLoop(estimator, X, **settings, path=path)
    given = {"estimator": estimator} if name == "from elsewhere" else {}
    while len(loop.rows) < 14:
        question = PoolLoop.load(path, **given).ask()
        loop = PoolLoop.load(path, **given)
        assert_array_equal(loop.ask().rows, question.rows)
        PoolLoop.load(path, **given).tell(answers[question.rows])
        loop = PoolLoop.load(path, **given)
    _ = loop.model
    assert_array_equal(loop.rows, whole.rows)
    columns = ["query", "row", "acquisition", "num_rows", "fresh"]
    pd.testing.assert_frame_equal(loop.history[columns], whole.history[columns], check_exact=True)
    assert_array_equal(loop.model.predict(X), whole.model.predict(X))


#: Creates the loop of the file or goes on with it, and says every call that is done.
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
from metaprior import MetaGPRegressor
from metaprior.active import PoolLoop
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

kind, path, num_answers = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
X = np.linspace(-2, 2, 60)[:, None]
SMALL = {"hidden_layer_sizes": (4,), "n_inducing": 4, "n_predict_draws": 8, "max_iter": 20}
if kind == "warm":
    settings = {"acquisition": "joint_information", "num_queries": 2}
    make = lambda: MetaGPRegressor(**SMALL)
else:
    settings = {}
    make = lambda: GaussianProcessRegressor(kernels.RBF() + kernels.WhiteKernel(0.01))
if path.exists():
    loop = PoolLoop.load(path, **({} if kind == "warm" else {"estimator": make()}))
else:
    loop = PoolLoop(make(), X, path=path, num_start=4, random_state=7, **settings)
print("made", flush=True)
while len(loop.rows) < num_answers:
    question = loop.ask()
    print("asked", *question.rows, flush=True)
    loop.tell(np.sin(3 * question.X[:, 0]))
    print("told", flush=True)
print("rows", *loop.rows, flush=True)
"""


def process(kind, path, num_answers):
    command = [sys.executable, "-c", PROGRAM, kind, str(path), str(num_answers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})


def killed_after(kind, path, num_answers, num_lines):
    """Run the program, kill it once it has said so many lines (or has ended), and return these."""
    with process(kind, path, num_answers) as running:
        lines = [running.stdout.readline().strip() for _ in range(num_lines)]
        running.send_signal(signal.SIGKILL)
    return lines


def finished(kind, path, num_answers):
    with process(kind, path, num_answers) as running:
        lines = running.stdout.read().splitlines()
    assert running.returncode == 0
    return lines


def test_a_loop_that_is_killed_goes_on_with_the_same_question(path):
    """It dies with its second question open; the file's next question is that one, and the rest is as if unharmed."""
    lines = killed_after("from elsewhere", path, 20, 4)
    assert [line.split()[0] for line in lines] == ["made", "asked", "told", "asked"]
    gp = GaussianProcessRegressor(RBF() + WhiteKernel(0.01))
    loop = PoolLoop.load(path, estimator=gp)
    asked = int(lines[3].split()[1])
    assert asked in [*loop.ask().rows, *loop.rows]  # the kill may come a call later
    loop.run(np.sin(3 * loop.X[:, 0]), 9)
    whole = PoolLoop(gp, loop.X, num_start=4, random_state=7)
    whole.run(np.sin(3 * loop.X[:, 0]), 9)
    assert_array_equal(loop.rows, whole.rows)


@pytest.mark.slow
def test_a_loop_killed_after_every_call_asks_what_an_unharmed_one_asks(path, tmp_path):
    """Warm starts, batches of two; one process is killed once it has asked, the next once it has told, and so on."""
    whole = finished("warm", tmp_path / "whole.metaprior", 12)
    heard, num_killed = [], 0
    while not any(line.startswith("rows") for line in heard):
        heard += killed_after("warm", path, 12, 2 + num_killed % 2)
        num_killed += 1
    assert num_killed >= 6
    assert finished("warm", path, 12)[-1] == whole[-1]
    asked = list(dict.fromkeys(line for line in heard if line.startswith("asked")))
    assert asked == [line for line in whole if line in asked]
    assert len(asked) >= 3


@pytest.mark.slow
def test_a_loop_killed_at_any_moment_asks_what_an_unharmed_one_asks(path, tmp_path):
    whole = finished("warm", tmp_path / "whole.metaprior", 16)
    killed = []
    for seed in range(6):
        with process("warm", path, 16) as running:
            running.stdout.readline()  # "made": importing is no call
            try:
                running.wait(rng(seed).uniform(0, 1.5))
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
        killed.append(running.returncode == -signal.SIGKILL)
    assert any(killed)
    assert finished("warm", path, 16)[-1] == whole[-1]


def test_a_file_that_is_there_is_not_written_over(path):
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="path: .* exists; load it to go on"):
        PoolLoop(Distance(), X, path=path)
    assert path.read_text() == "precious"


def test_a_seed_that_nobody_gave_is_kept(path):
    loop = PoolLoop(Distance(), X, path=path)
    again = PoolLoop.load(path, estimator=Distance())
    assert again.random_state == loop.random_state
    assert_array_equal(again.ask().rows, loop.ask().rows)


def test_a_function_to_choose_by_is_given_again(path):
    def left(predictive):
        return -np.arange(len(predictive.mean))

    PoolLoop(Distance(), X, acquisition=left, num_start=1, path=path, random_state=0).tell(0.0, rows=0)
    with pytest.raises(ValueError, match="chose by a function; give it again"):
        PoolLoop.load(path, estimator=Distance())
    assert PoolLoop.load(path, estimator=Distance(), acquisition=left).ask().rows.tolist() == [1]


def test_an_estimator_that_is_not_in_the_file_is_asked_for(path):
    PoolLoop(Distance(), X, path=path)
    with pytest.raises(ValueError, match="holds no .*Distance, which is not of metaprior; give it again"):
        PoolLoop.load(path)
    with pytest.raises(ValueError, match="expected the loop's own model, a .*Distance; got .*GaussianProcessRegressor"):
        PoolLoop.load(path, estimator=GaussianProcessRegressor())


@pytest.mark.parametrize("part", [{"activation": lambda x: x}, {"optimizer": optax.sgd(1e-3)}])
def test_what_has_no_plain_form_is_told_before_the_first_question(part, path):
    with pytest.raises(UnsavableError, match="cannot be saved|needs the default"):
        PoolLoop(MAPRegressor(**part), X, path=path)
    assert not path.exists()


def test_a_file_of_a_model_is_told_from_one_of_a_loop(path, tmp_path):
    model = ExactGPRegressor(n_restarts=0, max_iter=0).fit(X, Y)
    model.save(path)
    with pytest.raises(ValueError, match="expected the file of a loop of 'active'; .* is one of 'ExactGPRegressor'"):
        PoolLoop.load(path)
    assert load(path).predict(X).shape == (40,)


# --- mistakes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"acquisition": "best"}, "acquisition: expected one of"),
        ({"acquisition": "joint_information"}, "'joint_information' needs function draws"),
        ({"num_queries": 0}, "num_queries: expected a whole number of at least 1; got 0"),
        ({"num_start": 1.5}, "num_start: expected a whole number"),
        ({"random_state": -1}, "random_state: expected a whole number of at least 0"),
        ({"warm_iter": 0}, "warm_iter: expected a whole number of at least 1, or None"),
        ({"labelled": (X[:3], Y[:2])}, "labelled: expected .* one target a row"),
        ({"test": (np.zeros((3, 2)), Y[:3])}, "test: expected .*1 columns, as the pool has"),
        ({"test": X}, r"test: expected a tuple \(X, y\)"),
        ({"labelled": (X[:2], ["a", "b"])}, "labelled: expected numbers"),
    ],
)
def test_settings_that_cannot_be_are_told(settings, message):
    with pytest.raises(ValueError, match=message):
        PoolLoop(Distance(), X, **settings)


def test_an_estimator_that_does_not_say_how_sure_it_is_is_refused():
    with pytest.raises(TypeError, match="expected an estimator that predicts its uncertainty"):
        PoolLoop(LinearRegression(), X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda loop: loop.tell([1.0, 2.0]), "tell: expected 3 answers.*got 2"),
        (lambda loop: loop.tell([1.0, 2.0, np.nan]), "tell: y: expected finite numbers"),
        (lambda loop: loop.tell("abc"), "tell: y: expected numbers"),
        (lambda loop: loop.tell(np.ones((3, 2))), "expected answers of shape .* as before"),
        (lambda loop: loop.tell(1.0, rows=0), "neither answered nor skipped"),
        (lambda loop: loop.tell(1.0, rows=40), "neither answered nor skipped"),
        (lambda loop: loop.tell(1.0, rows=-1), "neither answered nor skipped"),
        (lambda loop: loop.tell([1.0, 1.0], rows=[7, 7]), "each once"),
        (lambda loop: loop.skip(0.5), "numbers of rows"),
        (lambda loop: loop.run(Y[:5], 10), r"oracle: expected 40 targets.*shape \(5,\)"),
    ],
)
def test_answers_that_cannot_be_are_told_and_change_nothing(call, message):
    loop = PoolLoop(Distance(), X, num_queries=3, num_start=1, random_state=0)
    loop.tell(0.0, rows=0)
    question = loop.ask()
    with pytest.raises(ValueError, match=message):
        call(loop)
    assert_array_equal(loop.ask().rows, question.rows)
    assert_array_equal(loop.rows, [0])


def test_telling_without_a_question_is_told():
    with pytest.raises(ValueError, match="tell: no question is open; ask first, or give rows"):
        PoolLoop(Distance(), X).tell(1.0)


# --- does it pay? -----------------------------------------------------------------


def example():
    spec = importlib.util.spec_from_file_location("active_example", ROOT / "examples" / "active.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAYING = {
    "exact gp, noise known": (ExactGPRegressor(kernels.Matern32(), n_restarts=1, noise=0.05), 12),
    "metagp": (MetaGPRegressor((20,), input_kernel="rbf", max_iter=500), 10),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAYING)
def test_active_learning_beats_random_where_few_rows_matter(name):
    """Paired over seeds: the same pool, the same five first rows, the same model; log RMSE with 10 to 30 answers."""
    estimator, num_seeds = PAYING[name]
    loops, found = example().loops, {"joint_information": [], "random": []}
    for seed in range(100, 100 + num_seeds):  # seeds that no choice was made on
        for acquisition, loop in loops(seed, estimator, num_answers=30, num_queries=5).items():
            found[acquisition].append(loop.history.groupby("num_rows")["rmse"].last().to_numpy()[1:])
    active, random = (np.log(runs) for runs in found.values())
    for rmse in (active, random):
        print(name, "RMSE with 10, 15, ... answers:", np.exp(np.mean(rmse, axis=0)).round(3))
    whole = ttest_rel(active.mean(axis=1), random.mean(axis=1), alternative="less").pvalue
    end = ttest_rel(active[:, -1], random[:, -1], alternative="less").pvalue
    print(name, "p:", whole, end)
    assert max(whole, end) < 0.01


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "active.md").read_text()
    long = 'hidden_layer_sizes=(20,), input_kernel="rbf", max_iter=1000'
    short = ", ".join(f"{name}={value}" for name, value in SMALL.items())
    assert long in page
    for code in page.split("```python\n")[1:]:
        exec(code.split("```")[0].replace(long, short).replace("num_answers=20", "num_answers=15"), {})
    assert "rmse" in capsys.readouterr().out
