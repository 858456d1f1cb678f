"""Contextual bandits: policies against slow twins, a loop that survives being killed, and simulations."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import BayesianRidge

from killed import calls_until_killed
from metaprior import MetaGPRegressor
from metaprior.bandit import Bandit, default_reward_model, simulate
from metaprior.bandit.policies import all_rows, epsilon_greedy, greedy, model_rows, thompson, uniform
from metaprior.baselines import ExactGPRegressor
from metaprior.decisions.warm_start import RefittedModel
from metaprior.estimators.base import Estimator
from metaprior.kernels import RBF

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")

RNG = np.random.default_rng(0)
CONTEXTS = RNG.standard_normal((20, 3))


def tiny():
    """A model of rewards that fits in a moment."""
    return MetaGPRegressor((4,), n_inducing=6, max_iter=60, n_predict_draws=4)


class Spy(RegressorMixin, BaseEstimator):
    """Counts its fits; knows that arm 1 gives 1 and arm 0 nothing."""

    def __init__(self, warm_start=False, max_iter=100, random_state=None):
        self.warm_start, self.max_iter, self.random_state = warm_start, max_iter, random_state

    def fit(self, X, y):
        self.fits_ = [*getattr(self, "fits_", []), (len(X), self.max_iter, self.random_state)]
        return self

    def predict(self, X):
        return X[:, -1]


Estimator.register(Spy)  # goes on from its last fit, as the library's own do


# --- policies ------------------------------------------------------------------------


def test_rows_are_every_context_with_every_arm():
    rows = all_rows(CONTEXTS[:2], 3).reshape(2, 3, 6)
    for n in range(2):
        for k in range(3):
            np.testing.assert_array_equal(rows[n, k], [*CONTEXTS[n], *np.eye(3)[k]])
    np.testing.assert_array_equal(model_rows(CONTEXTS[:2], np.array([2, 0]), 3), rows[[0, 1], [2, 0]])


class SharedDraw(Spy):
    """A draw is one large number for all arms, and a little more for arm 1."""

    def sample_y(self, X, n_samples, random_state):
        level = 100 * np.random.default_rng(random_state).standard_normal(n_samples)
        return level + 0.1 * X[:, -1:]


def test_one_draw_decides_all_arms_at_a_context():
    """Draws of every arm for itself would choose arm 0 half of the time."""
    scores = thompson(1.0)(SharedDraw(), np.repeat(CONTEXTS, 5, axis=0), 2, RNG)
    np.testing.assert_array_equal(np.argmax(scores, axis=1), 1)
    assert len(np.unique(scores[:, 0])) == 100  # and every context has a draw of its own


@pytest.mark.parametrize("count", [1, 3, 70])
def test_thompson_scores_are_the_draws_at_the_rows(count):
    model = ExactGPRegressor("rbf", n_restarts=0, max_iter=0, noise=0.3, random_state=0)
    model.fit(all_rows(CONTEXTS, 2), RNG.standard_normal(40))
    contexts = RNG.standard_normal((count, 3))
    scores = thompson(1.0)(model, contexts, 2, np.random.default_rng(5))
    rng, twin = np.random.default_rng(5), []
    for start in range(0, count, 64):
        rows, num_draws = all_rows(contexts[start : start + 64], 2), {1: 1, 3: 4, 64: 64, 6: 8}[min(count - start, 64)]
        draws = model.sample_y(rows, num_draws, random_state=int(rng.integers(2**31 - 1)))
        twin += [[draws[2 * i, i], draws[2 * i + 1, i]] for i in range(len(rows) // 2)]
    np.testing.assert_array_equal(scores, twin)


def test_thompson_chooses_an_arm_as_often_as_it_is_the_best():
    """P(f_1 > f_0) of a fitted Gaussian process, in closed form, against many rounds at one context."""
    model = ExactGPRegressor("rbf", n_restarts=0, max_iter=0, noise=0.5, random_state=0)
    model.fit(all_rows(CONTEXTS, 2), 0.3 * np.tile([0.0, 1.0], 20) + RNG.standard_normal(40))
    rows = all_rows(CONTEXTS[:1] + 0.5, 2)
    many = model.sample_y(rows, 200_000, random_state=9)
    probability = np.mean(many[1] > many[0])
    chosen = np.argmax(thompson(1.0)(model, np.repeat(CONTEXTS[:1] + 0.5, 1024, axis=0), 2, RNG), axis=1)
    assert 0.1 < probability < 0.9
    assert abs(chosen.mean() - probability) < 4 * np.sqrt(probability * (1 - probability) / 1024)


def test_a_spread_moves_draws_towards_the_mean():
    model = ExactGPRegressor("rbf", n_restarts=0, max_iter=0, noise=0.3, random_state=0)
    model.fit(all_rows(CONTEXTS, 2), RNG.standard_normal(40))
    whole, half, none = (thompson(s)(model, CONTEXTS, 2, np.random.default_rng(5)) for s in (1.0, 0.5, 0.0))
    mean = greedy(model, CONTEXTS, 2, RNG)
    np.testing.assert_allclose(none, mean, rtol=1e-12)
    np.testing.assert_allclose(half, (whole + mean) / 2, rtol=1e-10, atol=1e-12)


def test_greedy_takes_the_largest_mean():
    np.testing.assert_array_equal(np.argmax(greedy(Spy(), CONTEXTS, 4, RNG), axis=1), 3)


def test_epsilon_greedy_explores_in_its_part_of_the_rounds():
    contexts, epsilon = np.zeros((4000, 1)), 0.3
    chosen = np.argmax(epsilon_greedy(epsilon)(Spy(), contexts, 2, RNG), axis=1)
    expected = epsilon / 2  # half of the explored rounds take the other arm
    assert abs(np.mean(chosen == 0) - expected) < 4 * np.sqrt(expected * (1 - expected) / 4000)


def test_uniform_takes_every_arm_as_often():
    chosen = np.argmax(uniform(None, np.zeros((3000, 1)), 3, RNG), axis=1)
    assert np.all(np.abs(np.bincount(chosen) / 3000 - 1 / 3) < 4 * np.sqrt(2 / 9 / 3000))


# --- fits -----------------------------------------------------------------------------


def test_a_model_is_fitted_afresh_when_the_rows_have_doubled_and_warm_in_between():
    model = RefittedModel(Spy(), warm_iter=7)
    sizes = [10, 13, 13, 19, 20, 25, 50]
    fitted = [model.fit(np.zeros((size, 1)), np.zeros(size), seed) for seed, size in enumerate(sizes)]
    assert fitted[2].fits_ == [(10, 100, 0), (13, 7, 1), (19, 7, 3)]  # 13 rows again: nothing to do
    assert fitted[5].fits_ == [(20, 100, 4), (25, 7, 5)]
    assert fitted[6].fits_ == [(50, 100, 6)]


def test_the_estimator_that_was_given_stays_as_it_is():
    given = Spy()
    RefittedModel(given, warm_iter=7).fit(np.zeros((3, 1)), np.zeros(3), 1)
    assert vars(given) == vars(Spy())


def test_the_model_is_fitted_every_so_many_rounds():
    bandit = Bandit(2, model=Spy(), policy="greedy", refit_every=4, warm_iter=7)
    for context in CONTEXTS[:13]:
        arm = bandit.ask(context)
        if bandit.num_rounds >= 4:
            assert arm == 1
        bandit.tell(0.0)
    assert [rows for rows, *_ in bandit.model.fitted.fits_] == [8, 12]
    assert bandit.model.fresh_rows == 8


def test_the_usual_model_is_made_for_the_contexts():
    contexts = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])  # distances 5, 5, 10
    at = np.array([[0.0, 0, 1, 0], [3.0, 4, 1, 0], [0.0, 0, 0, 1]])
    kernel = default_reward_model(contexts, 2).input_kernel.bound_to(4)
    np.testing.assert_allclose(kernel(at, at)[0], [1, np.exp(-0.5), np.exp(-4)], rtol=1e-5)


# --- ask and tell -----------------------------------------------------------------------


def test_rounds_that_wait_are_asked_again_with_the_same_arms():
    bandit = Bandit(3, policy="uniform")
    arms = bandit.ask(CONTEXTS)
    np.testing.assert_array_equal(bandit.ask(CONTEXTS), arms)
    with pytest.raises(ValueError, match="20 rounds wait for their rewards"):
        bandit.ask(CONTEXTS + 1)
    bandit.tell(np.arange(20.0))
    assert bandit.num_rounds == 20
    np.testing.assert_array_equal(bandit.rewards, np.arange(20))
    np.testing.assert_array_equal(bandit.contexts, CONTEXTS)


def test_history_is_a_row_a_round():
    pandas = pytest.importorskip("pandas")
    bandit = Bandit(2, policy="uniform")
    arms = bandit.ask(CONTEXTS[:3])
    bandit.tell([1.0, 2.0, 3.0], [0.5, 0.0, 0.25])
    expected = {"round": [1, 2, 3], "arm": arms, "reward": [1.0, 2.0, 3.0], "regret": [0.5, 0.0, 0.25]}
    expected["cumulative_regret"] = [0.5, 0.5, 0.75]
    pandas.testing.assert_frame_equal(bandit.history(), pandas.DataFrame(expected))


@pytest.mark.parametrize("policy", ["thompson", "epsilon_greedy"])
def test_a_bandit_that_is_loaded_between_any_two_calls_chooses_the_same(policy, tmp_path):
    settings = {"model": tiny(), "policy": policy, "refit_every": 4, "warm_iter": 20, "random_state": 1}

    def told(bandit, start):
        contexts = CONTEXTS[start : start + 4]
        arms = bandit.ask(contexts)
        bandit.tell(arms * contexts[:, 0])

    whole = Bandit(2, **settings)
    path = tmp_path / "bandit"
    Bandit(2, **settings, path=path)
    for start in (0, 4, 8, 12):  # fresh at 4 and 8 rounds, warm at 12
        told(whole, start)
        Bandit.load(path).ask(CONTEXTS[start : start + 4])
        told(Bandit.load(path), start)
    loaded = Bandit.load(path)
    np.testing.assert_array_equal(loaded.arms, whole.arms)
    np.testing.assert_array_equal(loaded.rewards, whole.rewards)
    np.testing.assert_array_equal(loaded.ask(CONTEXTS[:4] + 0.1), whole.ask(CONTEXTS[:4] + 0.1))


def test_an_existing_file_is_not_replaced(tmp_path):
    Bandit(2, policy="uniform", path=tmp_path / "bandit")
    with pytest.raises(FileExistsError, match="load it to go on"):
        Bandit(2, policy="uniform", path=tmp_path / "bandit")


def test_a_foreign_model_must_be_given_again(tmp_path):
    bandit = Bandit(2, model=BayesianRidge(), policy="greedy", refit_every=5, path=tmp_path / "bandit")
    bandit.ask(CONTEXTS)
    bandit.tell(CONTEXTS[:, 0])
    with pytest.raises(ValueError, match="not of metaprior.*give it again"):
        Bandit.load(tmp_path / "bandit")
    loaded = Bandit.load(tmp_path / "bandit", BayesianRidge())
    np.testing.assert_array_equal(loaded.ask(CONTEXTS), bandit.ask(CONTEXTS))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_arms": 1}, "num_arms: expected a whole number of at least 2; got 1"),
        ({"policy": "luck"}, "policy: expected one of .*'thompson'.*; got 'luck'"),
        ({"epsilon": 2}, "epsilon: expected a number between 0 and 1; got 2"),
        ({"spread": -1}, "spread: expected a number of at least 0; got -1"),
        ({"refit_every": 0}, "refit_every: expected a whole number of at least 1; got 0"),
    ],
)
def test_settings_that_are_none_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Bandit(**{"num_arms": 2, **changes})


def test_rewards_and_contexts_that_do_not_fit_are_refused():
    bandit = Bandit(2, policy="uniform")
    with pytest.raises(ValueError, match="no round waits for a reward"):
        bandit.tell(1.0)
    with pytest.raises(ValueError, match="expected finite numbers"):
        bandit.ask([np.nan, 1.0])
    bandit.ask(CONTEXTS)
    with pytest.raises(ValueError, match="expected 20 finite rewards"):
        bandit.tell(1.0)
    bandit.tell(np.zeros(20))
    with pytest.raises(ValueError, match=r"expected contexts of 3 numbers; got an array of shape \(1, 2\)"):
        bandit.ask([1.0, 2.0])


# --- simulations ----------------------------------------------------------------------


class Doors:
    """Five kinds of doors: staying out gives 0; going in gives 5 at a good kind and costs 15 at a bad one."""

    kinds = np.random.default_rng(3).integers(5, size=400)
    gains = np.array([5.0, -15.0, -15.0, 5.0, -15.0])

    def contexts(self, rounds):
        return np.eye(5)[self.kinds[rounds]]

    def expected(self, rounds):
        return np.stack([np.zeros(len(rounds)), self.gains[self.kinds[rounds]]], axis=1)

    def rewards(self, rounds, arms):
        return self.expected(rounds)[np.arange(len(rounds)), arms]


PROBLEM = Doors()


def test_regret_is_what_the_oracle_gains_more():
    history = simulate(Bandit(2, policy="uniform"), PROBLEM, 300)
    expected = PROBLEM.expected(np.arange(300))
    twin = [max(row) - row[arm] for row, arm in zip(expected, history["arm"], strict=True)]
    np.testing.assert_array_equal(history["regret"], twin)
    assert set(history["regret"]) == {0.0, 5.0, 15.0}


def test_a_simulation_goes_on_where_it_stopped():
    whole, parts = (Bandit(2, policy="uniform", random_state=4, refit_every=8) for _ in range(2))
    simulate(parts, PROBLEM, 20)
    parts.ask(PROBLEM.contexts(np.arange(20, 24)))  # stopped with rounds that wait
    simulate(whole, PROBLEM, 20)
    simulate(whole, PROBLEM, 30)
    np.testing.assert_array_equal(simulate(parts, PROBLEM, 30)["arm"], whole.arms)


def test_thompson_learns_which_doors_to_leave():
    model = ExactGPRegressor(RBF(1.0), n_restarts=0, noise=10.0, max_iter=0)
    regret = {
        policy: simulate(Bandit(2, model=model, policy=policy, refit_every=20), PROBLEM, 200)["regret"].sum()
        for policy in ("thompson", "uniform")
    }
    assert regret["thompson"] < 0.5 * regret["uniform"]


# --- killed -------------------------------------------------------------------------

LOOP = """
import numpy as np
from metaprior import MetaGPRegressor
from metaprior.bandit import Bandit
model = MetaGPRegressor((4,), n_inducing=6, max_iter=60)
try:
    bandit = Bandit(4, model=model, refit_every=2, warm_iter=20, path=sys.argv[1])
except FileExistsError:
    bandit = Bandit.load(sys.argv[1])
while bandit.num_rounds < 6:
    context = np.random.default_rng(bandit.num_rounds).standard_normal(2)
    arm = bandit.ask(context)
    done(f"chose {arm}")
    bandit.tell(arm * context[0])
    done("told")
"""


@pytest.mark.slow
def test_a_bandit_killed_between_any_two_calls_goes_on_with_the_same_arms(tmp_path):
    whole = calls_until_killed(LOOP, tmp_path / "whole", 12)
    for first in (1, 2, 7, 8, 9, 10):
        path = tmp_path / f"killed after {first}"
        before = calls_until_killed(LOOP, path, first)
        after = calls_until_killed(LOOP, path, 12 - first + first % 2)  # a round without a reward is asked again
        assert before[: first - first % 2] + after == whole
