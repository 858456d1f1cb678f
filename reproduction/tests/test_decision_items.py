"""The items on optimisation and on the bandit: their numbers from known ones, and what their judges say."""

import numpy as np
import pytest

from metaprior.decisions import Box, minimise
from metaprior_reproduction.items import bandit, optimisation
from metaprior_reproduction.parts import botorch_search
from metaprior_reproduction.parts.item import Outcome, Results, Run
from metaprior_reproduction.problems import BRANIN, Mushrooms

SEEDS = range(4)
ERRORS = 0.01 * np.array([-1.5, -0.5, 0.5, 1.5])


def results_of(item, metric, means, **config):
    """Results in which every method has a metric with the given mean, and small errors over four seeds."""
    runs = [Run(m, s, Outcome({metric: mean + ERRORS[s]}), 1.0) for m, mean in means.items() for s in SEEDS]
    return Results({**item.presets["paper"], "seeds": 4, **config}, runs)


# --- optimisation -----------------------------------------------------------------


def parabola(x):
    return float(np.sum((x - 0.3) ** 2))


def test_every_search_begins_with_the_points_of_our_optimiser():
    pytest.importorskip("torch")
    seen = []
    values = botorch_search.search(lambda x: seen.append(x) or parabola(x), [(-1, 2)] * 2, 6, seed=3)
    ours = minimise(parabola, [(-1, 2)] * 2, 6, random_state=3)
    np.testing.assert_allclose(seen, ours.X)
    np.testing.assert_allclose(values, ours.y)


def test_botorch_comes_near_the_minimum_of_a_parabola():
    pytest.importorskip("botorch")
    first = botorch_search.search(parabola, [(-1, 2)] * 2, 12, seed=0)
    assert np.min(first) < 0.1 * np.min(first[:6])
    np.testing.assert_array_equal(first, botorch_search.search(parabola, [(-1, 2)] * 2, 12, seed=0))


def test_botorch_is_left_out_where_it_is_missing_and_the_evidence_says_so(monkeypatch):
    monkeypatch.setattr(botorch_search, "is_installed", lambda: False)
    config = optimisation.PRESETS["smoke"]
    assert optimisation.methods(config) == ["branin MetaGP, Thompson", "branin random"]
    results = results_of(
        optimisation.ITEM, "log10_regret", {"branin MetaGP, Thompson": -3, "branin random": 0}, **config
    )
    (verdict,) = optimisation.judge(results)
    assert verdict.outcome == "agrees"
    assert "BoTorch is not installed here: it is left out" in verdict.evidence


@pytest.mark.parametrize(("ours", "words"), [(-3, ["agrees", "better"]), (-2, ["agrees"] * 2), (1, ["worse"] * 2)])
def test_the_search_is_judged_by_paired_logarithms(ours, words):
    means = {"branin MetaGP, Thompson": ours, "branin BoTorch GP, qLogEI": -2, "branin random": 0}
    results = results_of(optimisation.ITEM, "log10_regret", means, evaluations={"branin": 40})
    assert [verdict.outcome for verdict in optimisation.judge(results)] == words


def test_the_regret_is_that_of_the_lowest_value_so_far():
    (outcome,) = optimisation.compute({"evaluations": {"branin": 5}}, "branin random", [2])
    points = Box(BRANIN.bounds).spread(5, 2)
    expected = np.minimum.accumulate([BRANIN(x) for x in points]) - BRANIN.lowest
    np.testing.assert_allclose(outcome.arrays["regret"], expected, rtol=1e-6)
    assert outcome.metrics["regret"] == pytest.approx(expected[-1])
    assert outcome.metrics["log10_regret_half"] == pytest.approx(np.log10(expected[1]))


# --- the bandit -------------------------------------------------------------------


def test_the_regret_of_random_arms_is_what_they_have_on_average():
    stream = Mushrooms(np.eye(4), np.array([0, 1, 1, 0]), random_state=1)
    regrets = []
    for seed in range(200):
        arms = np.random.default_rng(seed).integers(0, 2, 50)
        expected = stream.expected(np.arange(50))
        regrets.append(np.sum(expected.max(axis=1) - expected[np.arange(50), arms]))
    error = np.std(regrets, ddof=1) / np.sqrt(200)
    assert abs(np.mean(regrets) - bandit.uniform_regret(stream, 50)[-1]) < 4 * error


@pytest.mark.parametrize(("share", "word"), [(8.0, "better"), (12.0, "agrees"), (14.6, "worse")])
def test_the_share_is_judged_by_its_bar(share, word):
    results = results_of(bandit.ITEM, "share", {bandit.OURS: share})
    (verdict,) = bandit.judge(results)
    assert verdict.outcome == word
    assert f"{share:.1f} ±" in verdict.evidence


def test_our_policy_uses_the_posterior_as_it_is():
    make, settings = bandit.POLICIES[bandit.OURS]
    assert make() is None
    assert settings["spread"] == 1.0
