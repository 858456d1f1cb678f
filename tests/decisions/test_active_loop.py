"""The pool loop: questions as a loop written by hand asks them, its history, and whether asking pays."""

import importlib.util

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ttest_rel
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from decisions.active_pools import LABELS, ROOT, SMALL, TEST, Distance, Frequencies, X, Y
from metaprior import MetaGPClassifier, MetaGPRegressor, kernels
from metaprior.baselines import ExactGPRegressor
from metaprior.decisions import PoolLoop

pytestmark = pytest.mark.filterwarnings("ignore:the median distance", "ignore:.*close to the specified")


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
    "metagp": (MetaGPRegressor(**SMALL, input_kernel=None), Y, "joint_information"),
    "classes": (MetaGPClassifier(**SMALL, input_kernel=None), LABELS, "joint_information"),
    "bald": (MetaGPClassifier(**SMALL, input_kernel=None), LABELS, "mutual_information"),
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
        loop = PoolLoop(estimator, X, acquisition=acquisition, n_queries=3, n_initial=6, random_state=5)
        history = loop.run(answers, 12).history
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
    loop = PoolLoop(Distance(), X, n_queries=3, n_initial=2, random_state=0)
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
    loop = PoolLoop(Distance(), X, n_initial=2, random_state=0)
    loop.tell(Y[[4, 9]], rows=[4, 9])
    assert_array_equal(loop.rows, [4, 9])
    assert np.isfinite(loop.ask().values).all()  # the first model is there
    assert loop.history["acquisition"].isna().all()


def test_a_pool_comes_to_its_end():
    loop = PoolLoop(Distance(), X[:7], n_queries=4, random_state=0)
    assert loop.run(Y[:7], 100).n_observed == 7
    with pytest.raises(ValueError, match="all 7 rows of the pool are answered or skipped"):
        loop.ask()


def test_random_rows_are_asked_for_until_there_are_two_classes():
    loop = PoolLoop(Frequencies(), X, acquisition="entropy", n_initial=2, n_queries=3, random_state=0)
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
    loop = PoolLoop(gp, X, n_queries=2, n_initial=3, test=TEST, random_state=0)
    history = loop.run(Y, 7).history
    assert list(history) == ["observation", "row", "acquisition", "n_rows", "rmse", "nll", "seconds", "fresh"]
    assert history["observation"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert history["n_rows"].tolist() == [3, 3, 3, 5, 5, 7, 7]
    assert history["acquisition"].isna().tolist() == [True] * 3 + [False] * 4
    assert_array_equal(history["row"], loop.rows)
    for size in (3, 5, 7):
        fit = clone(gp).fit(X[loop.rows[:size]], Y[loop.rows[:size]])
        expected = np.sqrt(np.mean((fit.predict(TEST[0]) - TEST[1]) ** 2))
        assert_allclose(history["rmse"][history["n_rows"] == size], expected, rtol=1e-12)


def test_history_has_a_line_for_the_model_before_the_first_answer():
    loop = PoolLoop(Distance(), X[10:], labelled=(X[:10], Y[:10]), test=TEST, random_state=0)
    history = loop.run(Y[10:], 2).history
    assert history["observation"].tolist() == [0, 1, 2]
    assert history["n_rows"].tolist() == [10, 11, 12]
    assert history["row"].isna().tolist() == [True, False, False]
    assert history["rmse"].notna().all()


def test_history_knows_nothing_of_a_fit_that_is_not_made():
    loop = PoolLoop(Distance(), X, n_initial=2, test=TEST, random_state=0)
    loop.tell(Y[loop.ask().rows])
    assert loop.history[["n_rows", "rmse", "fresh"]].isna().all(axis=None)
    loop.ask()
    assert loop.history[["n_rows", "rmse", "fresh"]].notna().all(axis=None)


def test_classes_are_scored_by_accuracy_and_a_class_not_met_has_no_probability():
    test = (np.zeros((4, 1)), np.array(["a", "a", "b", "c"]))
    loop = PoolLoop(Frequencies(), X, acquisition="entropy", n_initial=3, test=test, random_state=0)
    loop.tell(["a", "b", "a"], rows=[0, 1, 2])
    loop.ask()
    loop.tell(["c"], rows=[3])
    loop.ask()
    assert_allclose(loop.history["accuracy"], 0.5)
    assert_array_equal(loop.history["nll"][:3], np.inf)
    assert_allclose(loop.history["nll"][3], -(2 * np.log(0.5) + 2 * np.log(0.25)) / 4)


# --- mistakes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"acquisition": "best"}, "acquisition: expected one of"),
        ({"acquisition": "joint_information"}, "'joint_information' needs function draws"),
        ({"n_queries": 0}, "n_queries: expected a whole number of at least 1; got 0"),
        ({"n_initial": 1.5}, "n_initial: expected a whole number"),
        ({"random_state": -1}, "random_state: expected a whole number of at least 0"),
        ({"warm_iter": 0}, "warm_iter: expected a whole number of at least 1, or None"),
        ({"labelled": (X[:3], Y[:2])}, "labelled: expected .* one target per row"),
        ({"test": (np.zeros((3, 2)), Y[:3])}, "test: expected .*1 columns, like the pool"),
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


def test_telling_without_a_question_is_told():
    with pytest.raises(ValueError, match="tell: no question is pending; ask first, or give rows"):
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
        for acquisition, loop in loops(seed, estimator, n_observations=30, n_queries=5).items():
            found[acquisition].append(loop.history.groupby("n_rows")["rmse"].last().to_numpy()[1:])
    active, random = (np.log(runs) for runs in found.values())
    for rmse in (active, random):
        print(name, "RMSE with 10, 15, ... answers:", np.exp(np.mean(rmse, axis=0)).round(3))
    whole = ttest_rel(active.mean(axis=1), random.mean(axis=1), alternative="less").pvalue
    end = ttest_rel(active[:, -1], random[:, -1], alternative="less").pvalue
    print(name, "p:", whole, end)
    assert max(whole, end) < 0.01
