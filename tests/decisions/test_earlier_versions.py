"""What earlier versions wrote and called: files that load, paths and names that are accepted for one release."""

import importlib
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import metaprior.decisions
from decisions.active_pools import Distance, X, Y
from decisions.bandit_models import Doors
from metaprior.bandit import simulate
from metaprior.decisions import Bandit, ChangedFileError, Optimiser, PoolLoop, choose, greedy_covariance, minimise
from metaprior.io.renamed import LOOP_PARAMETERS
from metaprior.predictive.from_sklearn import GaussianMarginals

FILES = Path(__file__).parents[1] / "files"
#: How the files were made: a pool and its answers, a function, contexts.
POOL = np.linspace(-2, 2, 12)[:, None]
CONTEXTS = np.random.default_rng(0).standard_normal((12, 2))

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


@pytest.fixture
def file(tmp_path):
    """Copy a file that was written by the version before all loops had one base; a loop goes on writing to it."""
    return lambda kind: shutil.copy(FILES / f"loop-{kind}.metaprior", tmp_path / "loop.metaprior")


def function(x):
    return float((x[0] + 0.5) ** 2 + np.sin(x[1] / 3))


# --- files ------------------------------------------------------------------------


def test_a_pool_loop_of_an_earlier_version_goes_on(file):
    """The numbers are those of that version, also of the rows that it would have asked for next."""
    path = file("active")
    loop = PoolLoop.load(path)
    assert (loop.n_queries, loop.n_initial, loop.warm_iter, loop.random_state) == (2, 3, 4, 7)
    np.testing.assert_array_equal(loop.pending.rows, [10, 9])
    history = loop.history
    assert history["row"].tolist() == [4, 11, 0]
    assert history["n_rows"].tolist() == [3, 5, 5]
    np.testing.assert_allclose(history["rmse"], [0.549661, 0.333408, 0.333408], rtol=1e-5)
    np.testing.assert_allclose(loop.model.predict(POOL[:2]), [0.495684, 0.508232], rtol=1e-4)
    loop.run(np.sin(3 * POOL[:, 0]), 8)
    np.testing.assert_array_equal(loop.rows, [4, 11, 0, 10, 9, 5, 8, 2, 7])  # row 1 was skipped
    np.testing.assert_array_equal(PoolLoop.load(path).rows, loop.rows)


def test_an_optimiser_of_an_earlier_version_goes_on(file):
    path = file("optimise")
    loop = Optimiser.load(path)
    assert (loop.acquisition, loop.n_initial, loop.random_state) == ("ei", 3, 3)
    np.testing.assert_allclose(loop.y, [0.934629, 0.148899, 2.039893, 1.431532], rtol=1e-5)
    np.testing.assert_allclose(loop.pending, [[-1.12288, 15.58004], [-1.267255, 11.20851]], rtol=1e-5)
    loop.run(function, 8)
    np.testing.assert_allclose(loop.X[6:], [[-1.357036, 17.273695], [-0.975355, 14.709432]], rtol=1e-2)
    np.testing.assert_array_equal(Optimiser.load(path).X, loop.X)


def test_two_loops_on_a_file_of_an_earlier_version_lose_nothing(file):
    path = file("optimise")
    first, second = Optimiser.load(path), Optimiser.load(path)
    first.tell(1.0, X=[0.0, 20.0])
    with pytest.raises(ChangedFileError, match="load the file again"):
        second.tell(2.0, X=[0.5, 20.0])
    Optimiser.load(path).tell(2.0, X=[0.5, 20.0])
    np.testing.assert_array_equal(Optimiser.load(path).y[4:], [1.0, 2.0])


def test_a_bandit_of_an_earlier_version_goes_on(file):
    path = file("bandit")
    bandit = Bandit.load(path)
    assert (bandit.n_arms, bandit.refit_every, bandit.epsilon, bandit.random_state) == (2, 4, 0.2, 5)
    np.testing.assert_array_equal(bandit.arms, [0, 1, 0, 0, 1, 1, 1, 1])
    np.testing.assert_array_equal(bandit.regrets, 0.5 * bandit.arms)
    np.testing.assert_array_equal(bandit.ask(CONTEXTS[8:10]), [0, 0])
    np.testing.assert_allclose(bandit.model.predict(np.zeros((1, 4))), 0.0383425, rtol=1e-4)
    bandit.tell([0.0, 0.0])
    assert Bandit.load(path).n_observed == 10


# --- paths ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["active", "bandit", "optimise"])
def test_an_old_path_gives_the_public_names_with_a_warning(name):
    old, new = importlib.import_module(f"metaprior.{name}"), importlib.import_module(f"metaprior.decisions.{name}")
    for public in new.__all__:
        with pytest.warns(DeprecationWarning, match=f"metaprior.{name} is now metaprior.decisions.{name}"):
            assert getattr(old, public) is getattr(new, public)
        assert getattr(metaprior.decisions, public) is getattr(new, public)
    with pytest.raises(AttributeError, match=f"'metaprior.{name}' has no attribute 'nothing'"):
        _ = old.nothing


def test_simulate_is_run():
    problem = Doors()
    with pytest.warns(DeprecationWarning, match=r"is now bandit.run\(...\).history"):
        history = simulate(Bandit(2, policy="uniform", random_state=0), problem, 5)
    assert history.equals(Bandit(2, policy="uniform", random_state=0).run(problem, 5).history)


# --- names ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        (lambda: PoolLoop(Distance(), X, num_queries=3).n_queries, "num_queries", "n_queries"),
        (lambda: PoolLoop(Distance(), X, num_start=3).n_initial, "num_start", "n_initial"),
        (lambda: Optimiser([(0, 1)], num_initial=3).n_initial, "num_initial", "n_initial"),
        (lambda: Bandit(num_arms=3).n_arms, "num_arms", "n_arms"),
        (
            lambda: PoolLoop(Distance(), X, n_initial=3).run(Y, num_answers=3).n_observed,
            "num_answers",
            "n_observations",
        ),
        (
            lambda: minimise(sum, [(0, 1)], num_evaluations=3, acquisition="random").n_observed,
            "num_evaluations",
            "n_observations",
        ),
        (lambda: minimise(sum, [(0, 1)], 2, batch=3, acquisition="random").n_queries, "batch", "n_queries"),
        (lambda: Optimiser([(0, 1)], surrogate=Distance(3))._model.template.random_state, "surrogate", "estimator"),
        (lambda: Bandit(2, model=Distance(3))._model.template.random_state, "model", "estimator"),
    ],
)
def test_an_old_name_is_accepted_with_a_warning(call, old, new):
    with pytest.warns(DeprecationWarning, match=f"{old} is now called {new}"):
        assert call() == 3


def test_the_old_order_of_tell_is_accepted_with_a_warning():
    old, new = (Optimiser([(0, 1)], random_state=0) for _ in range(2))
    with pytest.warns(DeprecationWarning, match=r"tell\(X, y\) is now tell\(y, X=X\)"):
        old.tell([0.5], [2.0])
    new.tell([2.0], X=[0.5])
    assert old.history.equals(new.history)


def test_functions_take_old_names_too():
    predictive = GaussianMarginals(np.zeros(5), np.ones(5))
    with pytest.warns(DeprecationWarning, match="num_queries is now called n_queries"):
        assert len(choose("random", predictive, num_queries=3, rng=np.random.default_rng(0)).rows) == 3
    with (
        pytest.warns(DeprecationWarning, match="num_queries is now called n_queries"),
        pytest.raises(TypeError, match="function draws"),
    ):
        greedy_covariance(predictive, num_queries=3)


def test_present_names_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        pool = PoolLoop(Distance(), X, n_queries=2, n_initial=3).run(Y, n_observations=3)
        found = minimise(sum, [(0, 1)], n_observations=2, n_queries=2, acquisition="random")
        bandit = Bandit(n_arms=2, estimator=Distance())
    assert (pool.n_observed, len(found.y), bandit.n_arms) == (3, 2, 2)


def test_no_old_name_is_a_present_name():
    assert not LOOP_PARAMETERS.keys() & {renamed.name for renamed in LOOP_PARAMETERS.values()}
