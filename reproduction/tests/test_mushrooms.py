"""The mushroom bandit: rewards as they are stated, and what learning costs on the real mushrooms."""

import warnings

import numpy as np
import pytest

from metaprior.baselines import MFVIRegressor
from metaprior.decisions import Bandit, default_reward_model
from metaprior_reproduction.datasets import mushroom
from metaprior_reproduction.problems import Mushrooms

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")

POISONOUS = np.array([0, 1, 1, 0, 1])
PROBLEM = Mushrooms(np.eye(5), POISONOUS, random_state=3)
ROUNDS = np.arange(4000)


def test_rewards_of_mushrooms_have_the_stated_means():
    rewards = PROBLEM.rewards(ROUNDS, np.ones(4000, int))
    poisonous = POISONOUS[np.argmax(PROBLEM.contexts(ROUNDS), axis=1)].astype(bool)
    assert set(rewards[~poisonous]) == {5.0}
    assert set(rewards[poisonous]) == {5.0, -35.0}
    assert abs(rewards[poisonous].mean() + 15) < 4 * 20 / np.sqrt(poisonous.sum())
    assert np.all(PROBLEM.rewards(ROUNDS, np.zeros(4000, int)) == 0)
    np.testing.assert_array_equal(PROBLEM.expected(ROUNDS)[:, 1], np.where(poisonous, -15.0, 5.0))
    np.testing.assert_array_equal(PROBLEM.expected(ROUNDS)[:, 0], 0)


def test_mushrooms_come_alike_and_a_round_is_always_the_same():
    kinds = np.argmax(PROBLEM.contexts(ROUNDS), axis=1)
    assert np.all(np.abs(np.bincount(kinds) / 4000 - 0.2) < 4 * np.sqrt(0.16 / 4000))
    np.testing.assert_array_equal(PROBLEM.contexts(ROUNDS[100:200]), PROBLEM.contexts(ROUNDS)[100:200])


def final_regrets(model, policy, num_rounds, seeds):
    """The cumulative regret on the mushrooms, for every seed."""
    data = mushroom()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array(
            [
                Bandit(2, estimator=model, policy=policy, random_state=seed)
                .run(Mushrooms(data.X, data.y, random_state=seed), num_rounds)
                .regrets.sum()
                for seed in seeds
            ]
        )


@pytest.mark.slow
def test_thompson_with_metagp_regrets_less_than_with_mfvi_and_than_uniform_on_mushrooms():
    """Every seed is the same stream of mushrooms for all: the differences have their standard errors."""
    ours = default_reward_model(mushroom().X[:50], 2)
    shared = ("hidden_layer_sizes", "max_iter", "batch_size", "n_train_draws", "noise")
    theirs = MFVIRegressor(**{name: getattr(ours, name) for name in shared})
    regret = {
        name: final_regrets(model, policy, 2000, range(100, 105))
        for name, model, policy in [
            ("metagp", None, "thompson"),
            ("mfvi", theirs, "thompson"),
            ("uniform", None, "uniform"),
        ]
    }
    for other in ("mfvi", "uniform"):
        gain = regret[other] - regret["metagp"]
        assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))
