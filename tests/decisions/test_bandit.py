"""Contextual bandits: policies against slow twins, rounds, and regret."""

import numpy as np
import pytest

from decisions.bandit_models import Doors, Spy
from metaprior.baselines import ExactGPRegressor
from metaprior.decisions import Bandit, default_reward_model
from metaprior.decisions.bandit.policies import all_rows, epsilon_greedy, greedy, model_rows, thompson, uniform
from metaprior.kernels import RBF

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")

RNG = np.random.default_rng(0)
CONTEXTS = RNG.standard_normal((20, 3))


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


def test_the_model_is_fitted_every_so_many_rounds():
    bandit = Bandit(2, estimator=Spy(), policy="greedy", refit_every=4, warm_iter=7)
    for context in CONTEXTS[:13]:
        arm = bandit.ask(context)
        if bandit.n_observed >= 4:
            assert arm == 1
        bandit.tell(0.0)
    assert [rows for rows, *_ in bandit.model.fits_] == [8, 12]
    assert bandit._model.fresh_rows == 8


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
    with pytest.raises(ValueError, match="the rewards of 20 rounds are pending"):
        bandit.ask(CONTEXTS + 1)
    bandit.tell(np.arange(20.0))
    assert bandit.n_observed == 20
    np.testing.assert_array_equal(bandit.rewards, np.arange(20))
    np.testing.assert_array_equal(bandit.contexts, CONTEXTS)


def test_history_has_one_row_per_round():
    pandas = pytest.importorskip("pandas")
    bandit = Bandit(2, policy="uniform")
    arms = bandit.ask(CONTEXTS[:3])
    bandit.tell([1.0, 2.0, 3.0], [0.5, 0.0, 0.25])
    expected = {"observation": [1, 2, 3], "arm": arms, "reward": [1.0, 2.0, 3.0], "regret": [0.5, 0.0, 0.25]}
    expected["cumulative_regret"] = [0.5, 0.5, 0.75]
    pandas.testing.assert_frame_equal(bandit.history, pandas.DataFrame(expected))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_arms": 1}, "n_arms: expected a whole number of at least 2; got 1"),
        ({"n_arms": 10_001}, "n_arms: expected at most 10000 arms; got 10001"),
        ({"policy": "luck"}, "policy: expected one of .*'thompson'.*; got 'luck'"),
        ({"epsilon": 2}, "epsilon: expected a number between 0 and 1; got 2"),
        ({"spread": -1}, "spread: expected a number of at least 0; got -1"),
        ({"refit_every": 0}, "refit_every: expected a whole number of at least 1; got 0"),
    ],
)
def test_settings_that_are_none_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Bandit(**{"n_arms": 2, **changes})


def test_a_reward_without_a_round_is_refused():
    with pytest.raises(ValueError, match="no reward is pending"):
        Bandit(2, policy="uniform").tell(1.0)


def test_contexts_have_the_width_of_the_first_ones():
    bandit = Bandit(2, policy="uniform")
    bandit.ask(CONTEXTS)
    bandit.tell(np.zeros(20))
    with pytest.raises(ValueError, match=r"expected contexts of 3 numbers; got an array of shape \(1, 2\)"):
        bandit.ask([1.0, 2.0])


# --- an environment whose truth is known ------------------------------------------------


PROBLEM = Doors()


def test_regret_is_what_the_oracle_gains_more():
    history = Bandit(2, policy="uniform").run(PROBLEM, 300).history
    expected = PROBLEM.expected(np.arange(300))
    twin = [max(row) - row[arm] for row, arm in zip(expected, history["arm"], strict=True)]
    np.testing.assert_array_equal(history["regret"], twin)
    assert set(history["regret"]) == {0.0, 5.0, 15.0}


def test_thompson_learns_which_doors_to_leave():
    model = ExactGPRegressor(RBF(1.0), n_restarts=0, noise=10.0, max_iter=0)
    regret = {
        policy: Bandit(2, estimator=model, policy=policy, refit_every=20, random_state=0)
        .run(PROBLEM, 200)
        .regrets.sum()
        for policy in ("thompson", "uniform")
    }
    assert regret["thompson"] < 0.5 * regret["uniform"]
