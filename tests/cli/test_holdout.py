"""Rows that are held out, and the scores that `fit --holdout` prints of them."""

import argparse
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import metaprior
from cli_table import COLUMNS, FRAME, NUMBERS, ROWS, SMALL, digest, fit_words
from metaprior import MetaGPRegressor, metrics
from metaprior.cli.holdout import Holdout, holdout_of
from metaprior.tables import learned_schema

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


@pytest.mark.parametrize(
    ("text", "holdout"),
    [
        ("0.2", Holdout(0.2, False, None)),
        ("last:0.25", Holdout(0.25, True, None)),
        ("last:0.2:a day: or so", Holdout(0.2, True, "a day: or so")),
    ],
)
def test_a_part_of_the_rows_is_read(text, holdout):
    assert holdout_of(text) == holdout


@pytest.mark.parametrize(
    "text", ["", "0", "1", "20", "-0.1", "nan", "first:0.2", "last", "last:", "last:2:day", "0.2:day"]
)
def test_what_is_no_part_of_the_rows_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="between 0 and 1, such as 0.2, or last:0.2"):
        holdout_of(text)


def split(text, frame, target="y", seed=0):
    schema = learned_schema(frame, target)
    return holdout_of(text).split(frame, schema, schema.target.encoded(frame[target]), seed)


def dated(rows=20):
    days = pd.date_range("2024-01-01", periods=rows).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"day": days, "x": np.arange(rows) % 7, "y": np.arange(rows) / 7})
    return frame.sample(frac=1, random_state=1).reset_index(drop=True)


def test_the_last_rows_are_those_with_the_latest_dates_wherever_they_stand():
    frame = dated()
    fitted, held = split("last:0.2", frame)
    assert len(held) == 4
    assert frame["day"][held].min() > frame["day"][fitted].max()
    assert_array_equal(np.sort(np.concatenate([fitted, held])), np.arange(20))


def test_rows_of_one_moment_are_held_out_together():
    frame = dated().assign(x=lambda f: np.minimum(f["y"].rank(), 15))  # the last six have one value
    fitted, held = split("last:0.1:x", frame)
    assert set(frame["x"][held]) == {15}
    assert len(held) == 6
    assert frame["x"][fitted].max() < 15


def test_rows_at_random_follow_the_seed():
    frame = dated(50)
    fitted, held = split("0.2", frame)
    assert (len(fitted), len(held)) == (40, 10)
    assert_array_equal(split("0.2", frame)[1], held)
    assert set(split("0.2", frame, seed=1)[1]) != set(held)
    assert not set(fitted) & set(held)


def test_every_class_is_held_out_in_its_part_and_none_wholly():
    labels = ["a"] * 30 + ["b"] * 10 + ["c"] * 2 + ["d"]
    _, held = split("0.2", pd.DataFrame({"x": np.arange(43.0), "y": labels}))
    counts = pd.Series(labels)[held].value_counts().to_dict()
    assert counts == {"a": 6, "b": 2, "c": 1}


def words(csv, out, frame=FRAME, *more):
    return fit_words(csv(frame), "price", out, *COLUMNS, "--ignore", "size", *more)


def test_held_out_scores_are_those_of_a_fit_of_the_other_rows(run, run_json, csv, tmp_path, folder):
    code, said = run_json(*words(csv, tmp_path / "m", FRAME, "--holdout", "0.3", "--input-kernel", "rbf"))
    found = said["holdout"]
    schema = metaprior.load(tmp_path / "m").schema
    y = FRAME["price"].to_numpy()
    fitted, held = Holdout(0.3, False, None).split(FRAME, schema, y, 0)
    model = MetaGPRegressor(input_kernel="rbf", random_state=0, **SMALL).fit(NUMBERS[fitted], y[fitted])
    expected = metrics.scores(model.predict_distribution(NUMBERS[held]), y[held])
    assert code == 0
    assert (found["rows"], found["fitted_rows"], found["chosen"]) == (9, 21, "chosen at random")
    assert_allclose([found["scores"][name] for name in expected], list(expected.values()), rtol=1e-9)
    residual = model.predict(NUMBERS[held]) - y[held]
    assert_allclose(found["scores"]["r2"], 1 - np.mean(residual**2) / np.var(y[held]), rtol=1e-9)
    assert metaprior.load(tmp_path / "m").summary["holdout"] == found


def test_the_model_of_a_fit_with_held_out_rows_is_fitted_to_all_rows(run, csv, tmp_path):
    usual, scored = tmp_path / "usual", tmp_path / "scored"
    assert run(*words(csv, usual))[0] == 0
    code, out, _ = run(*words(csv, scored, FRAME, "--holdout", "last:0.2:x"))
    assert code == 0
    one, other = metaprior.load(usual), metaprior.load(scored)
    assert_array_equal(one.estimator.predict(NUMBERS), other.estimator.predict(NUMBERS))
    assert other.summary["rows"] == ROWS
    for part in (
        "6 rows, the last ones by 'x'; a fit to the other 24, in ",
        "RMSE  ",
        "R2  ",
        "coverage  ",
        "all rows",
    ):
        assert part in out


def test_scores_of_classes_stand_beside_the_most_frequent_class(run, run_json, csv, tmp_path):
    table = csv(FRAME.drop(columns=["id", "day", "price"]))
    code, said = run_json(*fit_words(table, "size", tmp_path / "m", "--holdout", "0.3"))
    assert code == 0
    scores = said["holdout"]["scores"]
    assert set(scores) == {"accuracy", "nll", "brier", "calibration_error", "entropy", "most_frequent"}
    labels = FRAME["size"].to_numpy()
    schema = metaprior.load(tmp_path / "m").schema
    _, held = Holdout(0.3, False, None).split(FRAME, schema, labels, 0)
    assert scores["most_frequent"] == pd.Series(labels[held]).value_counts(normalize=True).max()
    text = run("info", tmp_path / "m")[1]
    assert "held out" in text
    assert re.search(rf"  accuracy +{scores['accuracy']:.3f}; always saying", text)


def test_a_killed_run_with_held_out_rows_keeps_both_fits(run, csv, tmp_path):
    kept = tmp_path / "run"
    more = ("--holdout", "0.3", "--checkpoint", kept)
    assert run(*words(csv, tmp_path / "m", FRAME, *more))[0] == 0
    assert {path.name for path in kept.iterdir()} > {"holdout"}
    assert any((kept / "holdout").iterdir())
    assert run(*words(csv, tmp_path / "again", FRAME, *more))[0] == 0
    assert digest(tmp_path / "m") != ""
    one, other = (metaprior.load(tmp_path / name).estimator for name in ("m", "again"))
    assert_array_equal(one.predict(NUMBERS), other.predict(NUMBERS))


@pytest.mark.parametrize(
    ("part", "code", "message"),
    [
        ("last:0.2:no", 1, "there is no input column 'no'"),
        ("last:0.2:colour", 2, "expected a column of dates or numbers to order the rows; 'colour' has texts"),
        ("1.5", 2, "--holdout: expected a part of the rows between 0 and 1"),
    ],
)
def test_rows_that_cannot_be_held_out_are_told(run, csv, tmp_path, part, code, message):
    ended, out, err = run(*words(csv, tmp_path / "m", FRAME, "--holdout", part))
    assert (ended, out) == (code, "")
    assert message in err
    assert not (tmp_path / "m").exists()


def test_the_last_rows_need_one_column_of_dates(run, csv, tmp_path):
    plain = csv(FRAME[["x", "price"]], "plain.csv")
    code, _, err = run(*fit_words(plain, "price", tmp_path / "m", "--holdout", "last:0.2"))
    assert (code, "expected last:0.2:COLUMN, with the column that orders the rows; no column has dates" in err) == (
        2,
        True,
    )
    twice = csv(dated().assign(other=lambda f: f["day"]), "twice.csv")
    code, _, err = run(*fit_words(twice, "y", tmp_path / "m", "--holdout", "last:0.2"))
    assert (code, "columns of dates are 'day', 'other'" in err) == (2, True)


def test_a_class_that_only_held_out_rows_have_is_told(run, csv, tmp_path):
    frame = pd.DataFrame({"x": np.arange(20.0), "y": ["a"] * 10 + ["b"] * 8 + ["c"] * 2})
    code, _, err = run(*fit_words(csv(frame), "y", tmp_path / "m", "--holdout", "last:0.2:x"))
    assert (code, "the class 'c' is only among the rows that are held out" in err) == (1, True)
