"""`metaprior compare`: the scores of `metaprior.compare`, in a leaderboard of methods."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metaprior
from cli_table import COLUMNS, FRAME, NUMBERS, ROWS, SMALL, WORDS
from metaprior import MetaGPRegressor
from metaprior.cli.contenders import CONTENDERS, chosen_methods, made_contender
from metaprior.cli.leaderboard import distances, leaderboard, sorted_table
from metaprior.cli.result import UsageError

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:the median distance", "ignore:only .* rows")
QUICK = ["--methods", "linear,boosted-trees"]


def compare_words(table, target, *more):
    return ["compare", table, "--target", target, *COLUMNS, *more]


@pytest.fixture
def table(folder):
    return folder / "train.csv"


def test_scores_are_those_of_compare_on_the_same_folds(run_json, table, tmp_path):
    more = ["--ignore", "size", "--methods", "metaprior,linear,boosted-trees", "--folds", "2", "--repeats", "2"]
    words = compare_words(table, "price", *more, *WORDS, "--input-kernel", "rbf", "--seed", "3")
    code, said = run_json(*words, "--out", tmp_path / "board.csv")
    estimators = {
        "metaprior": MetaGPRegressor(input_kernel="rbf", **SMALL, random_state=3),
        "linear": make_pipeline(StandardScaler(), BayesianRidge()),
        "boosted-trees": HistGradientBoostingRegressor(random_state=3),
    }
    folds = RepeatedKFold(n_splits=2, n_repeats=2, random_state=3)
    expected = metaprior.compare(estimators, NUMBERS, FRAME["price"].to_numpy(), cv=folds, verbose=False)
    assert code == 0
    assert [row["method"] for row in said["methods"]] == list(expected["rmse"]["mean"].sort_values().index)
    for row in said["methods"]:
        for name in ("rmse", "nll", "crps", "coverage_95"):
            for kind, key in (("mean", name), ("se", f"{name}_se")):
                value = np.nan if row[key] is None else row[key]
                assert_allclose(value, expected.loc[row["method"], (name, kind)], rtol=1e-7, atol=1e-12)
    assert (said["rows"], said["scored_on"], len(said["splits"])) == (ROWS, "2 folds, 2 times", 12)
    written = pd.read_csv(tmp_path / "board.csv")
    assert written["method"].tolist() == [row["method"] for row in said["methods"]]
    assert_allclose(written["rmse"], [row["rmse"] for row in said["methods"]])
    trees = written.set_index("method").loc["boosted-trees"]
    assert trees[["rmse", "rmse_se"]].notna().all()
    assert trees[["nll", "crps", "coverage_95", "calibration_error"]].isna().all()


def test_the_leaderboard_shows_means_errors_and_the_best(run, table):
    code, out, _ = run(*compare_words(table, "price", "--ignore", "size", *QUICK, "--folds", "3"))
    lines = out.splitlines()
    assert code == 0
    assert lines[0].startswith(f"regression of 'price', {ROWS} rows, scored on 3 folds; ")
    assert lines[1].split() == ["method", "RMSE", "NLL", "CRPS", "95", "%", "coverage", "seconds"]
    assert {line.split()[0] for line in lines[2:4]} == {"linear", "boosted-trees"}
    assert lines[2].split()[0] == "linear"  # the price is linear but for noise
    assert lines[2].count(" ± ") == 4
    assert lines[2].count(" *") == 4
    assert lines[3].count("  -") == 3
    assert "sorted by RMSE" in lines[4]


def test_classes_have_their_own_scores(run_json, run, table):
    words = compare_words(table, "size", "--ignore", "price", *QUICK, "--folds", "2")
    code, said = run_json(*words)
    labels = np.unique(FRAME["size"], return_inverse=True)[1]
    trees = next(row for row in said["methods"] if row["method"] == "boosted-trees")
    found = [
        np.mean(
            HistGradientBoostingClassifier(random_state=0).fit(NUMBERS[a], labels[a]).predict(NUMBERS[b]) == labels[b]
        )
        for a, b in RepeatedStratifiedKFold(n_splits=2, n_repeats=1, random_state=0).split(NUMBERS, labels)
    ]
    assert code == 0
    assert_allclose(trees["accuracy"], np.mean(found))
    assert [row["nll"] for row in said["methods"]] == sorted(row["nll"] for row in said["methods"])
    assert run(*words)[1].splitlines()[1].split() == ["method", "accuracy", "NLL", "ECE", "seconds"]


def test_rows_can_be_held_out_instead_of_folds(run_json, table):
    base = compare_words(table, "price", "--ignore", "size", "--methods", "linear")
    code, said = run_json(*base, "--holdout", "last:0.2")
    train, test = slice(0, 24), slice(24, None)  # the days of the table are in order
    model = make_pipeline(StandardScaler(), BayesianRidge()).fit(NUMBERS[train], FRAME["price"][train])
    expected = np.sqrt(np.mean((model.predict(NUMBERS[test]) - FRAME["price"][test]) ** 2))
    assert (code, said["scored_on"]) == (0, "6 rows, the last ones by 'day'")
    assert_allclose(said["methods"][0]["rmse"], expected, rtol=1e-9)
    assert said["methods"][0]["rmse_se"] is None
    code, said = run_json(*base, "--holdout", "0.3", "--repeats", "4")
    assert (said["scored_on"], len(said["splits"])) == ("9 rows, chosen at random, 4 times", 4)


def test_a_large_table_is_thinned_with_a_note(run_json, run, table):
    words = compare_words(table, "price", "--ignore", "size", "--methods", "linear", "--max-rows", "20")
    assert run_json(*words)[1]["rows"] == 20
    assert "note: 20 of 30 rows are compared, drawn at random; --max-rows 30 takes all." in run(*words)[2]


def test_the_exact_gp_is_left_out_of_many_rows_unless_it_is_named():
    few, many = (chosen_methods(None, "regression", rows) for rows in (1000, 1001))
    assert {"metaprior", "exact-gp", "ensemble", "mfvi", "laplace", "boosted-trees", "linear"} <= set(few.names)
    assert few.notes == []
    assert set(few.names) - set(many.names) == {"exact-gp"}
    assert many.notes == [
        "exact-gp is left out: its time grows with the cube of the rows, and 1,001 to fit are more than 1,000; name it "
        "in --methods to have it."
    ]
    assert chosen_methods(["exact-gp"], "regression", 10_000).names == ["exact-gp"]
    assert "exact-gp" not in chosen_methods(None, "classification", 10).names


@pytest.mark.parametrize(
    ("asked", "task", "message"),
    [
        (["forest"], "regression", "expected some of metaprior, exact-gp, .*; got 'forest'"),
        (["exact-gp"], "classification", "exact-gp predicts numbers and no classes"),
    ],
)
def test_a_method_that_is_not_there_is_told(asked, task, message):
    with pytest.raises(UsageError, match=message):
        chosen_methods(asked, task, 10)


def test_a_package_that_is_not_installed_is_told(monkeypatch):
    monkeypatch.setitem(CONTENDERS, "none", CONTENDERS["lightgbm"]._replace(package="no_such_package"))
    with pytest.raises(UsageError, match="none needs the package no_such_package; pip install no_such_package"):
        chosen_methods(["none"], "regression", 10)
    assert "none" not in chosen_methods(None, "regression", 10).names


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("name", CONTENDERS)
def test_every_method_can_be_made_with_the_seed_and_the_network_of_ours(name, task):
    contender = CONTENDERS[name]
    if not contender.is_installed() or not contender.path(task):
        pytest.skip("not there")
    own = MetaGPRegressor((7, 3), activation="relu", max_iter=11, random_state=5)
    made = made_contender(name, task, own)
    params = made.get_params()
    assert hasattr(made, "fit")
    assert all(value == 5 for key, value in params.items() if key.endswith("random_state") and "__" not in key)
    if "hidden_layer_sizes" in params:
        assert (params["hidden_layer_sizes"], params["activation"]) == ((7, 3), "relu")
        assert params.get("max_iter", 11) == 11


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "ngboost"])
def test_boosted_trees_of_other_libraries_are_scored_if_they_are_installed(run_json, table, name):
    pytest.importorskip(name)
    for target, other in (("price", "size"), ("size", "price")):
        words = compare_words(table, target, "--ignore", other, "--methods", name, "--holdout", "0.3", "--repeats", "1")
        code, said = run_json(*words)
        assert code == 0
        assert said["methods"][0]["rmse" if target == "price" else "accuracy"] is not None
    assert (said["methods"][0]["nll"] is None) == (target == "price" and name != "ngboost")


def scored(**scores):
    columns = pd.MultiIndex.from_product([scores, ["mean", "se"]])
    rows = np.stack([column for values in scores.values() for column in (values, np.full(3, 0.1))], axis=1)
    return pd.DataFrame(np.array(rows, float), index=["a", "b", "c"], columns=columns)


def test_methods_are_sorted_by_the_distance_from_the_best_value_and_unknown_ones_are_last():
    table = scored(rmse=[3, 1, 2], coverage_95=[0.5, 0.99, 0.93], nll=[np.nan, 2, 1])
    assert list(sorted_table(table, "regression", "rmse").index) == ["b", "c", "a"]
    assert list(sorted_table(table, "regression", "coverage_95").index) == ["c", "b", "a"]
    assert list(sorted_table(table, "regression", "nll").index) == ["c", "b", "a"]
    assert list(sorted_table(scored(accuracy=[0.1, 0.9, 0.5]), "classification", "accuracy").index) == ["b", "c", "a"]
    assert distances.__doc__
    assert leaderboard(table, "regression").splitlines()[1].split() == ["a", "3", "±", "0.1", "-", "0.5", "±", "0.1"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--folds", "1"], "--folds: expected a number from 2 to the number of rows, 30; got 1"),
        (["--folds", "31"], "--folds: expected a number from 2 to the number of rows, 30; got 31"),
        (["--folds", "0"], "--folds: expected a whole number of at least 1; got '0'"),
        (["--folds", "2", "--holdout", "0.2"], "--folds and --holdout: expected one of them; got both"),
        (["--holdout", "last:0.2", "--repeats", "2"], "--repeats: the last rows are always the same"),
        (["--methods", ","], "--methods: expected names of methods with commas between them; got ','"),
        (["--methods", "forest"], "--methods: expected some of metaprior, "),
        (["--sort", "accuracy"], "--sort: expected one of rmse, nll, crps, coverage_95"),
    ],
)
def test_a_comparison_that_is_not_understood_has_exit_code_2(run, table, more, message):
    code, out, err = run(*compare_words(table, "price", "--ignore", "size", *more))
    assert (code, out) == (2, "")
    assert message in err


def test_a_method_that_fails_has_no_scores_and_a_note_says_why(run, run_json, table):
    """Student-t noise needs no such columns; a batch of no rows cannot be had."""
    words = compare_words(table, "price", "--ignore", "size", "--methods", "metaprior,linear", "--folds", "2", *WORDS)
    broken = [*words, "--likelihood", "poisson"]  # the prices are negative, too
    code, out, err = run(*broken)
    assert code == 0
    assert "note: metaprior, fold 1 of 2: scores are NaN after ValueError" in err
    assert out.splitlines()[3].split() == ["metaprior", "-", "-", "-", "-", "-"]
    code, said = run_json(*[word if word != "metaprior,linear" else "metaprior" for word in broken])
    assert (code, "every estimator failed in every fold" in said["error"]["message"]) == (1, True)


def test_an_existing_leaderboard_is_not_overwritten(run, table, tmp_path):
    out = tmp_path / "board.csv"
    out.write_text("mine")
    words = compare_words(table, "price", "--ignore", "size", "--methods", "linear", "--folds", "2", "--out", out)
    assert (run(*words)[0], out.read_text()) == (1, "mine")
    assert run(*words, "--force")[0] == 0
    assert out.read_text().startswith("method,rmse,rmse_se,nll,")
    assert json.loads(run(*words, "--force", "--json")[1])["out"] == str(out)
