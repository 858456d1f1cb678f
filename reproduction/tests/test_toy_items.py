"""The items on toy problems: their numbers from known ones, the judges' words, and draws that repeat."""

import json
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from dense import posterior
from metaprior import MetaGPRegressor, kernels
from metaprior.datasets import Split
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.periods import starting_periods
from metaprior.weight_gp import conditional_named
from metaprior_reproduction.items import (
    approx_classification,
    approx_regression,
    architectures,
    data_regimes,
    fnp_1d,
    four_class,
    period_sweep,
    prior_global,
    prior_local,
    sinusoid,
    weight_covariance,
)
from metaprior_reproduction.parts import approximations
from metaprior_reproduction.parts.figures import entropy_share
from metaprior_reproduction.parts.item import Outcome, Results, Run, Summary
from metaprior_reproduction.parts.methods import CLASSIFIERS, REGRESSORS, WHOSE, configured, published, square
from metaprior_reproduction.parts.verdicts import against_paper, at_most, margin, paired, said
from small import small_metagp

MODULES = [
    approx_classification,
    approx_regression,
    architectures,
    data_regimes,
    fnp_1d,
    four_class,
    period_sweep,
    prior_global,
    prior_local,
    sinusoid,
    weight_covariance,
]
#: Five seeds' errors: their mean is 0, their standard error 0.0007.
ERRORS = 0.001 * np.array([-2, -1, 0, 1, 2])


def made(module, numbers, seeds=5, **changed):
    """Results with the given metrics, every seed off by a small error of its own (none for one seed)."""
    config = {**module.ITEM.presets["paper"], "seeds": seeds, **changed}
    errors = ERRORS if seeds == 5 else np.zeros(seeds)
    runs = [
        Run(method, seed, Outcome({name: value + errors[seed] for name, value in of_method.items()}), 1.0)
        for method, of_method in numbers.items()
        for seed in range(seeds)
    ]
    return Results(config, runs)


def words(module, numbers, **kwargs):
    return [verdict.outcome for verdict in module.ITEM.judge(made(module, numbers, **kwargs))]


# --- presets --------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES)
def test_presets_are_plain_have_seeds_and_name_their_methods_once(module):
    for preset in ("smoke", "paper"):
        config = module.ITEM.presets[preset]
        assert json.loads(json.dumps(config)) == config
        names = module.ITEM.methods(config)
        assert 0 < len(names) == len(set(names))
    assert module.ITEM.presets["smoke"]["seeds"] == 1
    assert module.ITEM.presets["paper"]["seeds"] >= 5


def test_the_table_of_the_paper_is_under_our_names():
    assert sinusoid.ITEM.paper["MetaGP-Local[Periodic]"] == {
        "in_rmse": 0.11,
        "in_nll": -0.76,
        "out_rmse": 0.12,
        "out_nll": -0.69,
    }
    assert set(sinusoid.ITEM.paper) <= set(sinusoid.methods(sinusoid.PRESETS["paper"])) <= set(REGRESSORS)


# --- verdicts -------------------------------------------------------------------------------


def test_a_number_agrees_with_a_rounded_one_within_two_standard_errors():
    assert against_paper(Summary(0.124, 0.005, 5), 0.11) == "agrees"
    assert against_paper(Summary(0.126, 0.005, 5), 0.11) == "worse"
    assert against_paper(Summary(0.094, 0.005, 5), 0.11) == "better"
    assert against_paper(Summary(0.114, float("nan"), 1), 0.11) == "agrees"
    assert against_paper(Summary(0.116, float("nan"), 1), 0.11) == "worse"


def test_a_bound_is_judged_with_standard_errors():
    found = [at_most("c", Summary(mean, 0.1, 5), 1.0, "e", whose="ours").outcome for mean in (0.7, 0.9, 1.1, 1.3)]
    assert found == ["better", "agrees", "agrees", "worse"]


def test_differences_are_taken_seed_by_seed_where_both_have_one():
    values = {("a", 0): 1.0, ("a", 1): 5.0, ("a", 2): 9.0, ("b", 1): 2.0, ("b", 2): 5.0, ("b", 3): 7.0}
    results = Results({}, [Run(m, s, Outcome({"x": v}), 1.0) for (m, s), v in values.items()])
    assert paired(results, "a", "b", "x") == Summary(3.5, 0.5, 2)
    assert paired(results, "a", "c", "x").n == 0


def test_one_run_is_said_to_be_one():
    assert said(Summary(0.1234, float("nan"), 1)) == "0.123 (one run)"
    assert said(Summary(0.1234, 0.01, 5), 2) == "0.12 ± 0.01"
    assert margin(Summary(0.1234, float("nan"), 1)) == 0


# --- judges ---------------------------------------------------------------------------------


def test_a_row_of_the_table_is_better_agrees_or_is_worse_inside_and_outside():
    paper = dict(sinusoid.ITEM.paper["DKL"])

    def found(**changed):
        return words(sinusoid, {"DKL": {**paper, **changed}})

    assert found() == ["agrees", "agrees"]
    assert found(out_nll=3.0) == ["agrees", "better"]
    assert found(in_rmse=0.13, out_nll=3.0, out_rmse=0.8) == ["worse", "worse"]
    assert found(in_nll=-0.8) == ["better", "agrees"]


def test_the_periodic_model_is_held_against_the_exact_gp_and_the_others():
    ours, exact, other = sinusoid.OURS, sinusoid.TRUTH, "DKL"
    paper = sinusoid.ITEM.paper
    good = {ours: dict(paper[exact]), exact: dict(paper[exact]), other: dict(paper[other])}
    assert words(sinusoid, good)[-2:] == ["agrees", "agrees"]
    far = {**good, ours: {**paper[exact], "in_nll": -0.7}}
    assert words(sinusoid, far)[-2:] == ["worse", "agrees"]
    beaten = {**good, other: {**paper[other], "out_rmse": 0.1}}
    assert words(sinusoid, beaten)[-2:] == ["agrees", "worse"]


def test_prior_spreads_are_compared_latents_by_latents():
    small, large = prior_global.methods(prior_global.PRESETS["paper"])
    assert words(prior_global, {small: {"function_std": 1.0}, large: {"function_std": 1.1}}) == ["agrees"]
    assert words(prior_global, {small: {"function_std": 1.0}, large: {"function_std": 1.0}}) == ["worse"]


def test_prior_draws_must_repeat_and_be_more_than_periodic():
    names = prior_local.methods(prior_local.PRESETS["paper"])
    good = {"function_std": 1.0, "repeats_period": 0.9, "repeats_half": -0.3, "not_periodic": 0.2}

    def found(**changed):
        own = {name: {**good, **changed} for name in names}
        return words(prior_local, {**own, **{name: {**own[name], "function_std": 2.0} for name in names[2:]}})

    assert found() == ["agrees"] * 7
    assert found(repeats_period=0.4)[:4] == ["worse"] * 4
    assert found(repeats_half=0.9)[:4] == ["worse"] * 4
    assert found(not_periodic=0.05)[4] == "worse"
    assert words(prior_local, dict.fromkeys(names, good))[5:] == ["worse", "worse"]


def test_weights_must_be_more_correlated_than_independent_ones_and_most_within_a_unit():
    good = {"marginal": 0.1, "conditional": 0.02, "independent": 0.02, "same_unit": 0.3, "other_unit": 0.05}

    def found(**changed):
        numbers = {f"{name}_correlation": value for name, value in {**good, **changed}.items()}
        return words(weight_covariance, {"diag": numbers})

    assert found() == ["agrees", "agrees"]
    assert found(marginal=0.02) == ["worse", "agrees"]
    assert found(same_unit=0.05) == ["agrees", "worse"]


def test_entropy_far_away_is_judged_for_the_local_model_and_its_rivals():
    def found(local, peer):
        numbers = {four_class.LOCAL: local, "DKL": peer}
        return words(four_class, {m: {"ring_entropy": value, "accuracy": 0.9} for m, value in numbers.items()})

    assert found(0.97, 0.3) == ["agrees", "agrees"]
    assert found(0.94, 0.3) == ["worse", "agrees"]
    assert found(0.97, 0.98) == ["agrees", "worse"]


@pytest.mark.parametrize(("module", "error"), [(approx_regression, "in_rmse"), (approx_classification, "nll")])
def test_diag_must_be_faster_than_full_and_close_to_it(module, error):
    def found(seconds, value):
        numbers = {
            "full, global": {"seconds_a_step": 1.0, error: 1.0},
            "diag, global": {"seconds_a_step": seconds, error: value},
        }
        return words(module, numbers)

    assert found(0.5, 1.1) == ["agrees", "agrees"]
    assert found(1.5, 0.9) == ["worse", "better"]
    assert found(0.5, 1.3) == ["agrees", "worse"]


def test_bars_must_grow_away_from_the_data():
    own = {"in_rmse": 0.1, "in_covered": 0.9, "out_covered": 0.8, "in_std": 0.1, "far_std": 1.0}
    flat = {**own, "far_std": 0.105, "out_covered": 0.1}
    assert words(fnp_1d, {"BNN-MFVI": flat, fnp_1d.LOCAL: own}) == ["worse", "agrees", "agrees"]
    assert words(fnp_1d, {"BNN-MFVI": own, fnp_1d.LOCAL: flat}) == ["agrees", "worse", "worse"]


def test_the_local_model_must_be_best_away_from_the_data_at_every_number_of_points():
    names = data_regimes.methods(data_regimes.PRESETS["paper"])
    numbers = {name: {"in_nll": 1.0, "in_rmse": 1.0, "out_nll": 3.0, "out_rmse": 3.0} for name in names}
    best = {**numbers["MetaGP, 20 points"], "out_nll": 2.0}
    numbers["MetaGP-Local[RBF], 20 points"] = best
    numbers["MetaGP, 10 points"] = {**best, "in_nll": 1.1}
    numbers["MetaGP, 50 points"] = {**best, "in_nll": 0.9, "out_nll": 3.0}
    found = words(data_regimes, numbers)
    assert found[:9] == ["worse", "worse", "worse", "agrees", "worse", "agrees", "worse", "worse", "better"]
    assert found[9:] == ["worse", "worse", "agrees"] * 3  # with the paper's own inference all numbers are equal


def test_architectures_are_consistent_within_a_tenth_of_the_functions_spread():
    names = architectures.methods(architectures.PRESETS["paper"])
    rmse = dict.fromkeys(names, 0.5)

    def found(last):
        return words(architectures, {n: {"in_rmse": v} for n, v in {**rmse, "100 units, relu": last}.items()})

    assert architectures.spread() == pytest.approx(np.std([x * np.sin(x) for x in np.linspace(0, 10, 5001)]), rel=0.01)
    assert found(0.5 + 0.09 * architectures.spread()) == ["agrees", "agrees"]
    assert found(0.5 + 0.11 * architectures.spread()) == [
        "worse",
        "agrees",
    ]  # the second is on the paper's own inference


def test_one_run_that_fails_is_not_hidden_by_the_large_error_it_makes():
    config = architectures.PRESETS["paper"]
    errors = {name: [0.5] * 5 for name in architectures.methods(config)}
    errors["100 units, relu"] = [0.5] * 4 + [0.5 + 0.6 * architectures.spread()]
    runs = [Run(name, i, Outcome({"in_rmse": v}), 1.0) for name, of in errors.items() for i, v in enumerate(of)]
    verdict, other = architectures.judge(Results(config, runs))
    assert (other.outcome, other.whose) == ("agrees", "as published")
    assert verdict.outcome == "worse"
    assert "100 units, relu" in verdict.evidence.split("too far")[1]


def test_the_period_of_the_prediction_must_be_the_set_one():
    numbers = {"trained_period": 1.6, "followed_1": 1.0, "followed_2": 0.5}
    assert words(period_sweep, {period_sweep.METHOD: numbers}, factors=[1.0, 2.0]) == ["agrees", "worse"]


@pytest.mark.parametrize("module", [sinusoid, four_class])
def test_judges_take_a_single_run_and_methods_that_are_missing(module):
    metrics = dict.fromkeys([*sinusoid.CELLS, "ring_entropy", "accuracy"], 0.5)
    results = made(module, {"BNN-MFVI": metrics, "MetaGP-Local[RBF]": metrics}, seeds=1)
    verdicts = module.ITEM.judge(results)
    assert verdicts
    assert all("(one run)" in verdict.evidence for verdict in verdicts)


# --- prior draws ----------------------------------------------------------------------------


def test_a_sine_repeats_after_a_period_and_turns_after_half():
    x = np.arange(200) / 20
    found = prior_local.repetition(np.stack([np.sin(2 * np.pi * x), np.sin(2 * np.pi * x + 1)]), 20)
    assert found["repeats_period"] == pytest.approx(1)
    assert found["repeats_half"] == pytest.approx(-1)
    assert found["not_periodic"] == pytest.approx(0, abs=1e-12)


def test_a_slope_is_taken_away_before_repetition_is_looked_for():
    x = np.arange(200) / 20
    found = prior_local.repetition((np.sin(2 * np.pi * x) + 7 * x)[None], 20)
    assert found["repeats_period"] == pytest.approx(1)
    assert found["not_periodic"] > 0.9


def test_noise_does_not_repeat():
    noise = np.random.default_rng(0).standard_normal((50, 400))
    found = prior_local.repetition(noise, 20)
    # correlations of about 360 pairs each, 50 functions; the moving average takes 1/20 off
    assert abs(found["repeats_period"]) < 5 / np.sqrt(360 * 50) + 1 / 20
    # 20 cycles: their mean keeps 1/20 of the variance
    assert found["not_periodic"] == pytest.approx(19 / 20, abs=0.01)


def test_moving_averages_are_integrals_over_the_width():
    f = np.random.default_rng(0).standard_normal((3, 30))
    slow = [[np.trapezoid(row[i : i + 9]) / 8 for i in range(22)] for row in f]
    np.testing.assert_allclose(prior_local.moving_average(f, 8), slow, rtol=1e-12, atol=1e-14)


def test_draws_of_the_local_prior_repeat_with_the_set_period():
    config = {**prior_local.PRESETS["smoke"], "sizes": [1, 6, 1], "num_functions": 10}
    for period in config["periods"]:
        (outcome,) = prior_local.compute(config, f"lengthscale 0.8, period {period}", [0])
        assert outcome.metrics["repeats_period"] > 0.9
        assert outcome.metrics["repeats_half"] < 0.5
        assert outcome.arrays["functions"].shape == (10, 81)


# --- weights --------------------------------------------------------------------------------


def test_bands_are_the_pairs_of_weights_that_meet_in_a_hidden_unit():
    inputs, hidden, outputs = 2, 3, 2
    ends = [(f"in{i}", f"h{j}") for i in range(inputs + 1) for j in range(hidden)]
    ends += [(f"h{i}", f"out{j}") for i in range(hidden + 1) for j in range(outputs)]
    ends = [{end for end in pair if end in ("h0", "h1", "h2")} for pair in ends]  # h3 is the bias
    slow = [[i != j and bool(a & b) for j, b in enumerate(ends)] for i, a in enumerate(ends)]
    np.testing.assert_array_equal(weight_covariance.sharing_a_hidden_unit((inputs, hidden, outputs)), slow)


def test_correlations_are_the_usual_ones():
    draws = np.random.default_rng(0).standard_normal((50, 4)) @ np.random.default_rng(1).standard_normal((4, 4))
    np.testing.assert_allclose(weight_covariance.correlation(draws), np.corrcoef(draws.T), atol=1e-12)


@pytest.mark.parametrize("conditional", ["diag", "full"])
def test_drawn_weights_have_the_covariance_of_the_dense_posterior_given_z(conditional):
    with jax.enable_x64(True):
        model = small_metagp(conditional_named(conditional), (1, 3, 1))
    draws = weight_covariance.drawn_weights(model, 4000, np.random.default_rng(0), draw_latents=False)
    expected = posterior(conditional, model, np.asarray(model.latents.mean))
    c, centred = expected.covariance, draws - expected.mean
    error = np.sqrt((np.outer(np.diag(c), np.diag(c)) + c**2) / len(draws))
    assert np.all(np.abs(centred.T @ centred / len(draws) - c) < 5 * error)
    assert np.all(np.abs(centred.mean(axis=0)) < 5 * np.sqrt(np.diag(c) / len(draws)))


# --- pieces ---------------------------------------------------------------------------------


def test_the_period_is_changed_in_the_copy_and_nothing_else():
    weights = small_metagp(conditional_named("pathwise"), (1, 3, 1), input_kernel=kernels.Periodic(1.7).bound_to(1))
    model = MetaGPRegressor(input_kernel=None)
    model.model_ = Model(weights, Dense((1, 3, 1)), Gaussian(np.zeros(1)))
    changed = period_sweep.with_period_times(model, 2.0)
    assert float(model.model_.weights.input_kernel.period[0]) == pytest.approx(1.7)
    assert float(changed.model_.weights.input_kernel.period[0]) == pytest.approx(3.4)
    leaves = [jax.tree.leaves(own.model_) for own in (model, changed)]
    assert sum(not np.array_equal(a, b) for a, b in zip(*leaves, strict=True)) == 1


def test_the_dominant_period_is_that_of_the_strongest_wave():
    x = np.linspace(-4.5, 4.5, 400)
    y = 3 * np.sin(2 * np.pi * x / 1.3) + np.cos(2 * np.pi * x / 0.4)
    assert period_sweep.dominant_period(x, y) == pytest.approx(1.3, rel=0.01)
    assert starting_periods(x[:, None], y[:, None], 1)[0] == pytest.approx(0.4, rel=0.01)


def test_test_points_are_split_at_the_range_of_the_data_and_have_its_noise():
    x = np.linspace(-5, 15, 4001)
    inside, outside = data_regimes.observed(Split(x[:, None], 0 * x), seed=0)
    assert (inside.X.min(), inside.X.max()) == (0, 10)
    assert len(inside.y) + len(outside.y) == 4001
    assert abs(np.concatenate([inside.y, outside.y]).std() / 0.5 - 1) < 5 / np.sqrt(2 * 4001)


def test_the_ring_has_its_radius_and_goes_all_the_way_round():
    ring = four_class.ring_points()
    np.testing.assert_allclose(np.linalg.norm(ring, axis=1), 20)
    np.testing.assert_allclose(ring.mean(axis=0), 0, atol=1e-12)


def test_entropy_is_one_where_classes_are_even_and_nothing_where_one_is_certain():
    np.testing.assert_allclose(entropy_share([[0.25] * 4, [1, 0, 0, 0], [0.5, 0.5, 0, 0]]), [1, 0, 0.5], atol=1e-12)


def test_a_square_grid_has_its_first_coordinate_along_the_columns():
    points = square(4, 5).reshape(5, 5, 2)
    np.testing.assert_allclose(points[0, :, 0], [-4, -2.4, -0.8, 0.8, 2.4])
    np.testing.assert_allclose(points[:, 0, 1], [-4, -2.4, -0.8, 0.8, 2.4])


def test_settings_that_a_method_does_not_have_are_left_out():
    gp = configured(REGRESSORS["Exact GP-RBF"](), {"max_iter": 7, "hidden_layer_sizes": [3]}, 2)
    assert (gp.max_iter, gp.random_state) == (7, 2)
    network = configured(REGRESSORS["MetaGP-Local[RBF]"](), {"max_iter": 7, "hidden_layer_sizes": [3]}, 2)
    assert (network.max_iter, network.hidden_layer_sizes, network.random_state) == (7, [3], 2)
    assert isinstance(network.input_kernel, kernels.RBF)


def test_the_bound_is_averaged_over_blocks_and_over_its_end():
    timed = approximations.Timed(SimpleNamespace(elbo_history_=np.arange(100.0)), 0.5)
    assert timed.metrics() == {"elbo": 94.5, "seconds_a_step": 0.5, "seconds_of_training": 50.0}
    arrays = timed.arrays()
    np.testing.assert_allclose(arrays["elbo"], 10 * np.arange(10) + 4.5)
    np.testing.assert_allclose(arrays["seconds"], arrays["step"] * 0.5)
    np.testing.assert_allclose(arrays["step"], 10 * np.arange(10) + 5)


def test_rows_as_published_draw_every_weight_and_have_the_kernel_of_ours():
    for table in (REGRESSORS, CLASSIFIERS):
        for method in ("MetaGP", "MetaGP-Local[RBF]", "MetaGP-Local[Periodic]"):
            ours, paper = table[method]().get_params(), table[published(method)]().get_params()
            assert (paper["output_layer"], paper["conditional"]) == ("drawn", "fitc")
            assert ours["output_layer"] == "auto"
            assert type(paper["input_kernel"]) is type(ours["input_kernel"])
            assert (WHOSE[method], WHOSE[published(method)]) == ("ours", "as published")
    assert WHOSE.keys() >= REGRESSORS.keys() | CLASSIFIERS.keys()
