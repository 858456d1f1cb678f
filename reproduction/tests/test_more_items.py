"""Items on real data, pools and tasks: their book-keeping, their numbers from known ones, their judges."""

import numpy as np
import pytest

from metaprior import kernels
from metaprior.datasets import Split
from metaprior_reproduction.items import (
    active_toy,
    active_uci,
    misspecified,
    mnist_ood,
    multitask,
    scaling,
    versus_gp,
)
from metaprior_reproduction.parts import images
from metaprior_reproduction.parts.item import Outcome, Results, Run
from metaprior_reproduction.parts.pool import Pool, asked, random_split

RNG = np.random.default_rng(0)


def results_of(item, numbers, seeds=2, spread=0.001):
    """Results of the smoke preset: `numbers` gives a method's metrics, each seed is a little off."""
    config = {**item.presets["smoke"], "seeds": seeds}
    runs = [
        Run(method, seed, Outcome({k: v * (1 + spread * seed) for k, v in numbers(method).items()}), 1.0)
        for method in item.methods(config)
        for seed in range(seeds)
    ]
    return Results(config, runs)


def outcomes(item, numbers, **kwargs):
    return [verdict.outcome for verdict in item.judge(results_of(item, numbers, **kwargs))]


# --- pools ------------------------------------------------------------------------


class Distances:
    """A model that predicts with a spread that grows with the first column."""

    def predict_distribution(self, X):
        return _Spread(X[:, 0])


class _Spread:
    is_classification = False

    def __init__(self, entropy):
        self.entropy = self.mean = entropy


def a_pool(seed=0, num_rows=30):
    X, rng = RNG.standard_normal((num_rows, 2)), np.random.default_rng(seed)
    return Pool(X, X[:, 0], random_split(num_rows, 4, 6, rng), rng)


def test_splits_are_disjoint_and_hold_every_row():
    split = random_split(50, 20, 10, np.random.default_rng(1))
    assert [len(part) for part in split] == [20, 10, 20]
    assert sorted(np.concatenate(split).tolist()) == list(range(50))


def test_splits_of_different_seeds_differ():
    one, other = (random_split(50, 20, 10, np.random.default_rng(seed)) for seed in (1, 2))
    assert set(one.start.tolist()) != set(other.start.tolist())


def test_a_split_that_leaves_no_pool_is_refused():
    with pytest.raises(ValueError, match=r"more than 20 \+ 10 rows, so that a pool is left; got 30"):
        random_split(30, 20, 10, np.random.default_rng(0))


@pytest.mark.parametrize("strategy", ["entropy", "random"])
def test_no_row_is_asked_for_twice_and_no_test_row_at_all(strategy):
    pools = [a_pool(seed) for seed in range(3)]
    counts = [(query, len(models)) for query, models in asked(pools, strategy, 20, lambda query: [Distances()] * 3)]
    assert counts == [(query, 3) for query in range(21)]
    for pool in pools:
        assert len(set(pool.known)) == len(pool.known) == 24
        assert pool.free == []
        assert not set(pool.known) & set(pool.test.tolist())


def test_the_row_of_highest_entropy_is_asked_for():
    pool = a_pool()
    expected = max(pool.free, key=lambda row: pool.X[row, 0])
    assert pool.ask("entropy", Distances()) == expected
    assert pool.known[-1] == expected
    np.testing.assert_array_equal(pool.labelled[0], pool.X[pool.known])


def test_every_fit_sees_the_answers_so_far():
    pool, seen = a_pool(), []

    def fit(query):
        seen.append((query, len(pool.labelled[1])))
        return [Distances()]

    list(asked([pool], "random", 3, fit))
    assert seen == [(0, 4), (1, 5), (2, 6), (3, 7)]


def test_pools_of_one_seed_are_the_same_for_both_strategies():
    config, X = active_uci.ITEM.presets["smoke"], RNG.standard_normal((200, 2))
    one, other = (active_uci._pool(config, X, X[:, 0], 3) for _ in range(2))
    assert (one.known, one.free) == (other.known, other.free)
    np.testing.assert_array_equal(one.test, other.test)


def test_toy_pools_start_with_the_same_number_of_every_class():
    y = np.repeat(np.arange(4), 5)
    start = active_toy.start_of(y, 2, np.random.default_rng(0))
    assert y[start].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len(set(start.tolist())) == 8


# --- numbers ----------------------------------------------------------------------


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 2.0])
def test_exponent_of_a_power_law_is_its_power(power):
    values = np.array([3.0, 7.0, 20.0, 64.0])
    assert scaling.exponent(values, 5 * values**power) == pytest.approx(power, abs=1e-12)


def test_held_bytes_are_at_least_those_of_arguments_and_results():
    import jax
    import jax.numpy as jnp

    compiled = jax.jit(lambda a: a @ a).lower(jnp.ones((64, 64), jnp.float32)).compile()
    assert scaling.held_bytes(compiled) >= 2 * 64 * 64 * 4


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({10: 3.0, 100: 1.0, 1000: 0.9}, 100),
        ({10: 1.0, 100: 3.0, 1000: 0.9}, 1000),  # a short run that was lucky does not count
        ({10: 1.0, 100: 1.0}, 10),
        ({10: 3.0, 100: 3.0}, None),
    ],
)
def test_steps_needed_are_the_fewest_from_which_on_the_error_stays_low(errors, expected):
    assert multitask.first_below(errors, goal=1.05) == expected


def test_tasks_of_one_seed_have_rows_of_their_own():
    config = multitask.ITEM.presets["smoke"]
    one, other = (multitask.task(config, f, seed=1)["train"].X for f in (0.5, 0.7))
    assert not np.any(np.isin(one, other))


def test_thinned_series_keep_their_ends_and_order():
    rows = Split(np.arange(100.0)[:, None], np.arange(100.0))
    thin = versus_gp.thinned(rows, 30)
    assert (len(thin.y), thin.y[0], thin.y[-1]) == (30, 0.0, 99.0)
    assert np.all(np.diff(thin.y) > 0)
    np.testing.assert_array_equal(versus_gp.thinned(rows, 500).y, rows.y)


def test_forecasts_come_after_what_is_known_and_move_back_by_their_shift():
    rows = Split(np.arange(100.0)[:, None], np.arange(100.0))
    known, ahead = versus_gp.forecast_split(rows, 0.2, 0.0)
    assert (known.y[-1], ahead.y[0], ahead.y[-1]) == (79.0, 80.0, 99.0)
    known, ahead = versus_gp.forecast_split(rows, 0.2, 0.05)
    assert (known.y[-1], ahead.y[0], ahead.y[-1]) == (74.0, 75.0, 94.0)


def test_a_forecast_of_everything_is_refused():
    rows = Split(np.zeros((10, 1)), np.zeros(10))
    with pytest.raises(ValueError, match="at least 2 rows before the forecast; 10 rows .* leave 0"):
        versus_gp.forecast_split(rows, 0.5, 0.9)


def test_methods_of_a_series_have_the_same_kernel():
    for make in versus_gp.KERNELS.values():
        kernel = make()
        own = [versus_gp.ESTIMATORS[name](kernel) for name in (versus_gp.METAGP, versus_gp.GP)]
        assert own[0].input_kernel is own[1].kernel is kernel


def test_least_correlation_is_that_of_the_farthest_points():
    long, short = (misspecified.least_correlation(kernels.RBF(scale), -2.0, 2.0) for scale in (100.0, 1.0))
    assert long == pytest.approx(np.exp(-0.5 * 0.04**2), rel=1e-5)
    assert short == pytest.approx(np.exp(-8.0), rel=1e-4)
    # half a period apart: exp(-2 / lengthscale^2)
    periodic = kernels.Periodic(1.0, lengthscale=2.0)
    assert misspecified.least_correlation(periodic, -2.0, 2.0) == pytest.approx(np.exp(-0.5), rel=1e-3)


def test_only_the_case_with_a_trend_has_one():
    config = misspecified.ITEM.presets["smoke"]
    plain, trend = (misspecified.rows_of(config, case, 0)["train"] for case in (misspecified.WRONG, misspecified.TREND))
    np.testing.assert_allclose(trend.y - plain.y, config["trend"] * plain.X[:, 0])


# --- judges -----------------------------------------------------------------------


@pytest.mark.parametrize("seeds", [1, 4])
def test_active_learning_agrees_only_where_it_is_clearly_below_random(seeds):
    def numbers(active, metagp):
        return lambda method: dict.fromkeys(
            ("rmse_0", "rmse_1", "rmse_2"),
            (1.0 if "random" in method else active) * (metagp if "MetaGP" in method else 1),
        )

    item = active_uci.ITEM
    assert outcomes(item, numbers(0.8, 0.9), seeds=seeds) == [*["agrees"] * 4, "better"]
    assert outcomes(item, numbers(1.2, 1.1), seeds=seeds) == ["worse"] * 5
    assert outcomes(item, numbers(1.0, 1.0), seeds=seeds) == [*["worse"] * 4, "agrees"]
    evidence = [v.evidence for v in item.judge(results_of(item, numbers(1.2, 1.0), seeds=seeds))]
    assert evidence[0].startswith("random is below active")


@pytest.mark.parametrize(
    ("lead", "outcome", "evidence"),
    [
        ([0.01, 0.02, 0.03, 0.02], "agrees", "above all of them on 5 of 5"),
        ([0.01, -0.005, 0.02, -0.015], "agrees", "by two standard errors on 0 (none)"),
        ([0.0, 0.0, 0.0, 0.0], "worse", "above all of them on 0 of 5 (none)"),
        ([-0.01, 0.005, -0.02, 0.01], "worse", "above all of them on 0 of 5 (none)"),
    ],
    ids=["clearly", "in the mean", "equal", "below"],
)
def test_a_detector_is_above_its_rivals_in_the_mean_and_its_errors_are_told(lead, outcome, evidence):
    def numbers(method, seed):
        ours = method == images.MIXTURE
        scores = {f"auroc_{name}": 0.9 + (lead[seed] if ours else 0.0) for name in images.OUTSIDE}
        return {**scores, "accuracy": 0.97, "nll": 0.1}

    config = {**mnist_ood.ITEM.presets["smoke"], "seeds": 4}
    runs = [Run(m, s, Outcome(numbers(m, s)), 1.0) for m in mnist_ood.ITEM.methods(config) for s in range(4)]
    verdict = mnist_ood.judge(Results(config, runs))[4]
    assert verdict.outcome == outcome
    assert evidence in verdict.evidence


@pytest.mark.parametrize(
    ("ratios", "outcome"),
    [
        ([0.8, 0.8, 0.8, 0.99], "agrees"),
        ([0.8, 0.8, 0.99, 0.99], "worse"),
        ([0.8, 0.8, 0.8, 1.01], "worse"),
    ],
    ids=["below on four", "sure on two", "above on one"],
)
def test_informed_rows_should_be_below_random_on_every_set_and_surely_on_three(ratios, outcome):
    config = {**active_uci.PRESETS["paper"], "seeds": 4}
    ratio = dict(zip(config["sets"], ratios, strict=True))

    def rmse(method, seed):  # a hundredth is within two standard errors of these four seeds
        name, _, how = method.split(" ")
        return ratio[name] * (1 + 0.05 * (seed - 1.5)) if how == "informed" else 1.0

    names = [f"rmse_{k}" for k in range(config["num_queries"] + 1)]
    runs = [
        Run(m, s, Outcome(dict.fromkeys(names, rmse(m, s))), 1.0) for m in active_uci.methods(config) for s in range(4)
    ]
    (verdict,) = [v for v in active_uci.judge(Results(config, runs)) if "on every set" in v.claim]
    assert verdict.outcome == outcome


def test_active_differences_within_two_errors_do_not_count():
    config = {**active_uci.ITEM.presets["smoke"], "seeds": 4}
    noise = {"yacht MetaGP active": [0.5, 1.5, 0.6, 1.3]}
    runs = [
        Run(m, s, Outcome(dict.fromkeys(("rmse_0", "rmse_1", "rmse_2"), noise.get(m, [1.0] * 4)[s])), 1.0)
        for m in active_uci.methods(config)
        for s in range(4)
    ]
    verdict = active_uci.judge(Results(config, runs))[0]
    assert verdict.outcome == "worse"
    assert verdict.evidence.startswith("no difference")


@pytest.mark.parametrize("seeds", [1, 3])
def test_toy_agrees_where_accuracy_is_above_random(seeds):
    def numbers(by_entropy):
        def of(method):
            value = by_entropy if method.endswith("entropy") else 0.7
            return {f"{metric}_{k}": value for metric in ("accuracy", "nll") for k in range(3)}

        return of

    count = len(active_toy.ITEM.presets["smoke"]["models"])
    assert outcomes(active_toy.ITEM, numbers(0.9), seeds=seeds) == ["agrees"] * count
    assert outcomes(active_toy.ITEM, numbers(0.5), seeds=seeds) == ["worse"] * count


@pytest.mark.parametrize("seeds", [1, 3])
def test_adapting_is_judged_by_its_error_and_its_steps(seeds):
    def numbers(few, needed):
        def of(method):
            if method.startswith("adapted"):
                return {"rmse_10": few, "rmse_100": 0.1, **({} if needed is None else {"steps_needed": needed})}
            return {"rmse_10": 0.5, "rmse_100": 0.1, "steps_needed": 100.0}

        return of

    def judged(few, needed):
        return outcomes(multitask.ITEM, numbers(few, needed), seeds=seeds, spread=0.0)

    assert judged(0.1, 5.0) == ["better", "better"]
    assert judged(0.1, 10.0) == ["better", "agrees"]
    assert judged(0.2, 50.0) == ["worse", "worse"]
    assert judged(0.1, None)[1] == "worse"


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize(("ours", "expected"), [(0.5, "better"), (1.0, "agrees"), (2.0, "worse")])
def test_forecasts_are_judged_by_their_paired_difference(ours, expected, seeds):
    def numbers(method):
        metrics = dict.fromkeys(("rmse", "nll"), ours if "MetaGP" in method else 1.0)
        return {**metrics, "fit_rmse": 1.0, "fit_nll": 1.0}

    assert outcomes(versus_gp.ITEM, numbers, seeds=seeds) == [expected] * 6


@pytest.mark.parametrize("lost", [{"fit_rmse": 1.6}, {"fit_nll": 1.6}])
def test_a_network_that_does_not_fit_the_known_values_is_worse_whatever_its_forecast(lost):
    def numbers(method):
        found = {"rmse": 0.5, "nll": 0.5} if "MetaGP" in method else {"rmse": 1.0, "nll": 1.0}
        return {**found, "fit_rmse": 1.0, "fit_nll": 1.0, **(lost if versus_gp.AUTO in method else {})}

    found = outcomes(versus_gp.ITEM, numbers, seeds=1)
    assert found == ["better", "better", "worse", "worse", "better", "better"]


def misspecified_results(preset, correlation, error, seeds=3):
    """Results in which the local model under the wrong kernel has the given numbers and all others have 1 and 0.5."""
    config = {**misspecified.ITEM.presets[preset], "seeds": seeds}
    names = ("in_rmse", "in_nll", "out_rmse", "out_nll")

    def numbers(method):
        case, model = method.split(": ")
        is_it = model.startswith(misspecified.LOCAL) and case != misspecified.RIGHT
        return dict.fromkeys(names, error if is_it else 1.0) | {"least_correlation": correlation if is_it else 0.5}

    runs = [Run(m, s, Outcome(numbers(m)), 1.0) for m in misspecified.methods(config) for s in range(seeds)]
    return Results(config, runs)


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_wrong_kernel_that_is_off_and_does_no_harm_agrees(seeds):
    for preset, count in (("paper", 12), ("smoke", 3)):
        verdicts = misspecified.judge(misspecified_results(preset, 0.95, 0.5, seeds))
        assert [v.outcome for v in verdicts] == ["agrees"] * count


@pytest.mark.parametrize(("correlation", "told"), [(0.7, "weakened"), (0.4, "not switched off")])
def test_a_wrong_kernel_that_stays_on_is_told(correlation, told):
    verdicts = misspecified.judge(misspecified_results("paper", correlation, 2.0))
    assert [v.outcome for v in verdicts] == ["worse"] * 12
    assert [v.whose for v in verdicts] == ["ours"] * 6 + ["as published"] * 6
    assert verdicts[0].evidence.startswith(told)


@pytest.mark.parametrize("seeds", [1, 3])
def test_exponents_above_linear_are_worse(seeds):
    def numbers(slope):
        return lambda method: {"exponent_seconds": slope, "exponent_bytes": 0.5}

    count = len(scaling.ITEM.presets["smoke"]["axes"])
    assert outcomes(scaling.ITEM, numbers(1.0), seeds=seeds) == ["better"] * 2 * count
    assert outcomes(scaling.ITEM, numbers(1.2), seeds=seeds, spread=0.0) == ["agrees", "better"] * count
    assert outcomes(scaling.ITEM, numbers(2.0), seeds=seeds) == ["worse", "better"] * count
