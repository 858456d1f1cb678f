"""The items on tables: their models, published numbers, and judges on made-up results."""

import importlib.util

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from metaprior.baselines import ExactGPRegressor
from metaprior_reproduction.items import gap_splits, uci_regression
from metaprior_reproduction.parts import table_models
from metaprior_reproduction.parts.item import Outcome, Results, Run, Summary
from metaprior_reproduction.parts.published import beside, best_published, is_level, printed, published
from metaprior_reproduction.parts.table_models import (
    DEFAULT,
    GP,
    LARGER,
    MODELS,
    NGBOOST,
    NOISY,
    NOISY_SETS,
    TREES,
    methods_of,
)

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (50, 2))
Y = 5 + X[:, 0] - np.abs(X[:, 1]) + 0.1 * RNG.standard_normal(50)


# --- published numbers --------------------------------------------------------------------


def test_a_printed_number_knows_its_rounding():
    assert printed("4.36") == (4.36, 0.005)
    assert printed("9e-4") == (9e-4, pytest.approx(5e-5))
    assert printed("-1.3")[1] == pytest.approx(0.05)


def test_published_numbers_are_of_our_sets_and_have_sources():
    for protocol in ("tables", "gaps"):
        for method in published(protocol):
            assert method.source
            assert set(method.numbers) <= set(uci_regression.SPLITS)
            assert all(set(own) <= {"rmse", "nll"} for own in method.numbers.values())
    assert {method.kind for method in published("tables")} == {
        *("Bayesian network", "deep GP", "diffusion model", "trees", "other")
    }


def test_the_best_published_number_leaves_trees_and_tabpfn_out():
    assert best_published("tables", "concrete", "rmse") == ("GMVIP 2026", printed("4.24"))
    assert best_published("tables", "concrete", "rmse", ("trees", "other"))[0] == "TabPFN"
    assert best_published("gaps", "bostonHousing", "rmse") is None


def test_level_with_a_published_number_allows_its_rounding_and_one_standard_error_of_ours():
    other = printed("4.2")
    assert is_level(Summary(4.24, float("nan"), 1), other)
    assert not is_level(Summary(4.26, float("nan"), 1), other)
    assert is_level(Summary(4.26, 0.05, 5), other)
    assert not is_level(Summary(4.36, 0.05, 5), other)


def test_published_numbers_stand_beside_ours_as_rows():
    rows = beside("tables", ["yacht"])
    assert rows["yacht PBP (published)"] == {"rmse": 1.02, "nll": 1.63}
    assert all(row.startswith("yacht ") for row in rows)


# --- models -------------------------------------------------------------------------------


def test_a_gp_that_learned_from_few_rows_is_the_gp_of_all_rows_with_their_hyper_parameters():
    model = table_models.ExactGPOfManyRows(learn_rows=30, most_rows=45, max_iter=20, random_state=1).fit(X, Y)
    rows = np.random.default_rng(1).permutation(50)
    few = ExactGPRegressor("rbf", n_restarts=0, max_iter=20, random_state=1).fit(X[rows[:30]], Y[rows[:30]])
    assert len(model.gp_.gps_[0].X_train_) == 45
    np.testing.assert_allclose(model.gp_.kernel_.inner.lengthscale, few.kernel_.inner.lengthscale, rtol=1e-5)
    assert model.gp_.noise_ == pytest.approx(few.noise_, rel=1e-5)
    new = RNG.uniform(-1, 1, (20, 2))
    kernel, noise = few.kernel_, few.noise_
    centred = Y[rows[:45]] - Y[rows[:45]].mean()
    gram = np.asarray(kernel(X[rows[:45]], X[rows[:45]])) + noise**2 * np.eye(45)
    expected = np.asarray(kernel(new, X[rows[:45]])) @ np.linalg.solve(gram, centred) + Y[rows[:45]].mean()
    np.testing.assert_allclose(model.predict_distribution(new).mean, expected, atol=2e-3)


def test_with_few_rows_the_gp_is_the_one_that_learned():
    model = table_models.ExactGPOfManyRows(max_iter=5).fit(X, Y)
    assert len(model.gp_.gps_[0].X_train_) == 50
    assert model.gp_.n_iter_ > 0


def test_settings_reach_the_models_that_they_are_meant_for():
    config = {"settings": {"hidden_layer_sizes": [7]}, "steps": {"yacht": 50}, "own_settings": {TREES: {"max_iter": 3}}}
    assert table_models.made("BNN-MFVI", config, "yacht", 2).get_params()["max_iter"] == 50
    assert table_models.made(DEFAULT, config, "yacht", 2).get_params()["max_iter"] == 3000  # as it comes
    assert table_models.made(TREES, config, "yacht", 2).get_params()["max_iter"] == 3
    made = table_models.made(table_models.PUBLISHED, config, "yacht", 2).get_params()
    assert (made["output_layer"], made["conditional"], made["max_iter"]) == ("drawn", "fitc", 50)
    assert (made["random_state"], made["hidden_layer_sizes"]) == (2, [7])


def test_noise_that_depends_on_the_input_is_for_three_sets_and_absent_packages_leave_a_row_out(monkeypatch):
    config = {"models": [DEFAULT, NOISY, NGBOOST]}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert table_models.models_of(config, "yacht") == [DEFAULT]
    assert table_models.models_of(config, NOISY_SETS[0]) == [DEFAULT, NOISY]
    assert table_models.left_out(config) == "not installed, and left out: NGBoost"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    assert table_models.models_of(config, "yacht") == [DEFAULT, NGBOOST]
    assert table_models.left_out(config) == ""


def test_ngboost_gives_gaussians():
    pytest.importorskip("ngboost")
    predicted = table_models.NGBoost(n_estimators=30).fit(X, Y).predict_distribution(X)
    assert np.sqrt(np.mean((predicted.mean - Y) ** 2)) < Y.std()
    assert np.all(predicted.std > 0)


# --- uci-regression -----------------------------------------------------------------------


def test_rows_that_are_in_training_are_told_from_new_ones():
    known = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = uci_regression.is_new(known, np.array([[3.0, 4.0], [3.0, 4.1], [2.0, 1.0]]))
    assert found.tolist() == [False, True, True]


def made_results(levels, sets=("yacht", "concrete", "energy"), seeds=4):
    """Return results in which a model's RMSE and NLL on every set are a level, the same but for a little by seed."""
    config = {**uci_regression.PRESETS["paper"], "splits": dict.fromkeys(sets, seeds), "models": list(levels)}
    runs = [
        Run(f"{name} {model}", seed, Outcome({"rmse": level + 0.01 * seed, "nll": level + 0.01 * seed}), 1.0)
        for name in sets
        for model, level in levels.items()
        for seed in range(seeds)
    ]
    return Results(config, runs)


def test_the_default_is_judged_among_all_models_of_the_library_and_not_against_trees():
    first, *_ = uci_regression.judge(made_results({DEFAULT: 1.0, GP: 1.5, LARGER: 2.0, NGBOOST: 0.1}))
    assert first.outcome == "agrees"
    assert first.whose == "ours"
    assert "on at least 3 of 3 sets (RMSE)" in first.claim
    behind, *_ = uci_regression.judge(made_results({DEFAULT: 1.0, GP: 1.5, LARGER: 0.9}))
    assert behind.outcome == "worse"
    assert "without our other configurations level on 3" in behind.evidence
    lost, *_ = uci_regression.judge(made_results({DEFAULT: 1.0, GP: 0.5}))
    assert "behind: yacht 1.0150 ± 0.0065, Exact GP 0.5150 ± 0.0065" in lost.evidence


@pytest.mark.parametrize(("level", "outcome"), [(-5.0, "agrees"), (9.0, "worse")])
def test_published_numbers_and_bars_are_compared_with_the_default(level, outcome):
    verdicts = uci_regression.judge(made_results({DEFAULT: level, LARGER: 0.0}))
    told = [verdict for verdict in verdicts if "published" in verdict.claim or "at most 4.6" in verdict.claim]
    assert [verdict.outcome for verdict in told] == [outcome] * 3


def test_a_set_with_fewer_splits_is_judged_and_drawn_by_those_it_has():
    config = {**uci_regression.PRESETS["smoke"], "splits": {"yacht": 3, "energy": 1}, "seeds": 3}

    def outcome(method, seed):
        name, model = method.split(" ", 1)
        value = 1.0 + 0.01 * seed - (model == DEFAULT)
        return Outcome({"rmse": value, "nll": value} if seed < config["splits"][name] else {})

    runs = [Run(m, s, outcome(m, s), 1.0) for m in methods_of(config) for s in range(3)]
    verdict = uci_regression.judge(Results(config, runs))[0]
    assert verdict.outcome == "agrees"
    assert "level on 2 (yacht, energy)" in verdict.evidence
    assert uci_regression.draw(Results(config, runs))


def test_every_model_says_whose_it_is_and_the_paper_preset_has_all_of_them():
    assert {MODELS[model].whose for model in MODELS} == {"ours", "as published", "baseline"}
    config = uci_regression.PRESETS["paper"]
    assert config["models"] == list(MODELS)
    assert list(config["splits"]) == list(uci_regression.SPLITS)


# --- gap-splits ---------------------------------------------------------------------------


def test_the_middle_third_of_a_column_is_held_out_and_constant_columns_are_not_counted():
    X = np.column_stack([np.full(10, 3.0), np.arange(10)[::-1], RNG.uniform(size=10)])
    train, test = gap_splits.gap_split(X, 0)
    assert sorted(X[test, 1].tolist()) == [3, 4, 5, 6]
    assert sorted([*train, *test]) == list(range(10))
    held = X[gap_splits.gap_split(X, 1).test, 2]
    assert np.sum(X[:, 2] < held.min()) == np.sum(X[:, 2] > held.max()) == 3


def test_blocks_are_a_row_and_its_nearest():
    X = np.array([[0.0, 0], [1, 0], [10, 0], [11, 0], [0.5, 0]])
    found = gap_splits.blocks(X, 5, 2, seed=0)
    assert {tuple(sorted(block)) for block in found.tolist()} == {(0, 4), (1, 4), (2, 3)}
    assert all(len(set(block)) == 2 for block in found.tolist())


def test_the_joint_density_of_a_block_is_that_of_the_rows_together():
    predicted = ExactGPRegressor("rbf", n_restarts=0, max_iter=10, random_state=0).fit(X, Y).predict_distribution(X)
    groups = np.array([[0, 1, 2], [5, 6, 7]])
    found = gap_splits.block_scores(predicted, Y, groups)
    dense = predicted.covariance(noise=True)
    joint = [multivariate_normal(predicted.mean[rows], dense[np.ix_(rows, rows)]).logpdf(Y[rows]) for rows in groups]
    assert found["joint_nll"] == pytest.approx(-np.mean(joint) / 3, abs=1e-5)
    assert found["block_nll"] == pytest.approx(-np.mean(predicted.log_prob(Y)[groups]), abs=1e-9)


def test_the_columns_of_the_gap_splits_are_those_that_vary():
    assert gap_splits.PRESETS["paper"]["seeds"] == max(gap_splits.COLUMNS.values())
    assert gap_splits.PRESETS["paper"]["splits"] == gap_splits.COLUMNS


def test_the_judge_of_the_gaps_counts_single_rows_and_blocks():
    config = {**gap_splits.PRESETS["paper"], "splits": {"yacht": 3}, "models": [DEFAULT, GP]}
    levels = {DEFAULT: {"nll": 1.0, "joint_nll": 1.0}, GP: {"nll": 1.5, "joint_nll": 0.5}}
    runs = [
        Run(f"yacht {model}", seed, Outcome({name: level + 0.01 * seed for name, level in own.items()}), 1.0)
        for model, own in levels.items()
        for seed in range(3)
    ]
    assert [verdict.outcome for verdict in gap_splits.judge(Results(config, runs))] == ["agrees", "worse"]
