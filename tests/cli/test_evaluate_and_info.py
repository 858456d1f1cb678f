"""Evaluate and info: scores as metrics gives them, and what a model's file holds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import metaprior
from cli_table import FRAME, NUMBERS, ROWS
from metaprior import metrics

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


def test_scores_are_those_of_metrics(folder, run_json, run, by_hand):
    code, said = run_json("evaluate", folder / "price.metaprior", folder / "train.csv")
    expected = metrics.scores(by_hand.predict_distribution(NUMBERS), FRAME["price"].to_numpy())
    assert code == 0
    assert said["scores"].keys() == expected.keys()
    assert_allclose(list(said["scores"].values()), list(expected.values()), rtol=1e-10)
    text = run("evaluate", folder / "price.metaprior", folder / "train.csv")[1]
    assert f"{expected['crps']:.4g}" in text
    assert "coverage_90" in text


def test_scores_of_classes_match_labels_to_classes(folder, run_json):
    _, said = run_json("evaluate", folder / "size.metaprior", folder / "train.csv")
    predicted = metaprior.load(folder / "size.metaprior").predict(FRAME)
    assert_allclose(said["scores"]["accuracy"], np.mean(predicted["class"] == FRAME["size"]))
    own = [predicted.loc[row, f"p_{label}"] for row, label in FRAME["size"].items()]
    assert_allclose(said["scores"]["nll"], -np.mean(np.log(own)), rtol=1e-9)
    assert set(said["scores"]) == {"accuracy", "nll", "brier", "calibration_error", "entropy"}


def test_an_unknown_class_is_named(folder, run_json, csv):
    path = csv(FRAME.assign(size=["huge", *FRAME["size"][1:]]))
    code, said = run_json("evaluate", folder / "size.metaprior", path)
    assert code == 1
    assert said["error"]["message"].startswith("row 1, column 'size': the class 'huge' was not in the training table")
    assert (said["error"]["row"], said["error"]["column"], said["error"]["value"]) == (1, "size", "huge")


def test_evaluation_needs_the_target(folder, run, csv):
    code, _, err = run("evaluate", folder / "price.metaprior", csv(FRAME.drop(columns="price").assign(Price=1)))
    assert code == 1
    assert "no column 'price' to compare with (did you mean 'Price'?)" in err


def test_info_says_what_the_file_holds(folder, run, run_json):
    code, said = run_json("info", folder / "price.metaprior")
    assert code == 0
    assert (said["task"], said["target"], said["rows"], said["steps"]) == ("regression", "price", ROWS, 20)
    assert list(said["columns"]) == ["x", "colour", "day", "member"]
    assert said["columns"]["colour"] == "category: 'blue', 'green', 'red'"
    assert said["columns"]["day"] == "date from 2024-01-01 to 2024-01-30"
    assert said["network"] == [6, 3, 1]
    assert said["weights"] == 6 * 3 + 3 + 3 * 1 + 1
    assert said["versions"]["metaprior"] == metaprior.__version__
    assert said["ignored"] == ["id", "size"]
    text = run("info", folder / "price.metaprior")[1]
    for part in ("'price', regression", "network 6-3-1", "ELBO", "metaprior 0", "category: 'blue'", "max_iter"):
        assert part in text


def test_info_reads_what_python_saved_and_predict_says_why_it_cannot(by_hand, run, tmp_path, folder):
    by_hand.save(tmp_path / "m")
    code, out, _ = run("info", tmp_path / "m")
    assert code == 0
    assert "MetaGPRegressor of 6 features, saved from Python by metaprior " in out
    code, _, err = run("predict", tmp_path / "m", folder / "train.csv")
    assert code == 1
    assert "knows no table columns" in err
