"""Fit and predict: a table becomes a model, and a model predicts a table."""

import re

import equinox as eqx
import numpy as np
import pytest
from numpy.testing import assert_allclose

import metaprior
from cli_table import COLUMNS, FRAME, NUMBERS, ROWS, SMALL, digest, fit_words
from metaprior import MetaGPClassifier, MetaGPRegressor, kernels
from metaprior.cli.estimator_options import estimator_of
from metaprior.cli.program import _parser
from metaprior.tables import learned_schema, read_table

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


def test_predictions_are_those_of_the_estimator_on_columns_encoded_by_hand(folder, run, tmp_path, by_hand):
    out = tmp_path / "p.csv"
    words = ["--interval", "0.5", "--interval", "0.9", "--out", out]
    assert run("predict", folder / "price.metaprior", folder / "train.csv", *words)[0] == 0
    found, predicted = read_table(out), by_hand.predict_distribution(NUMBERS)
    assert list(found) == ["mean", "std", "epistemic_std", "low_50", "high_50", "low_90", "high_90"]
    assert_allclose(found["mean"], predicted.mean, rtol=1e-14)
    assert_allclose(found["std"], predicted.std, rtol=1e-14)
    assert_allclose(found["epistemic_std"] ** 2, predicted.epistemic_variance, rtol=1e-12)
    assert_allclose(found[["low_90", "high_90"]].T, predicted.interval(0.9), rtol=1e-14)
    assert_allclose(found[["low_50", "high_50"]].T, predicted.interval(0.5), rtol=1e-14)


def test_classes_come_with_probabilities_and_entropy(folder, run, tmp_path):
    out = tmp_path / "p.csv"
    assert run("predict", folder / "size.metaprior", folder / "train.csv", "--out", out)[0] == 0
    found = pd.read_csv(out)
    model = MetaGPClassifier(input_kernel=kernels.RBF(), random_state=0, **SMALL).fit(NUMBERS, FRAME["size"])
    labels = ["large", "middle", "small"]
    assert list(found) == ["class", *[f"p_{label}" for label in labels], "entropy", "mutual_information"]
    p = found[[f"p_{label}" for label in labels]].to_numpy()
    assert_allclose(p, model.predict_proba(NUMBERS), rtol=1e-12)
    assert found["class"].tolist() == [labels[k] for k in np.argmax(p, axis=1)]
    assert_allclose(found["entropy"], -np.sum(p * np.log(p), axis=1), rtol=1e-9)
    assert np.all(found["mutual_information"] <= found["entropy"])


def test_order_of_columns_is_free_and_extra_ones_are_noted_on_stderr(folder, run, csv):
    shuffled = csv(FRAME[["member", "day", "colour", "x"]].assign(weather="fine"))
    code, out, err = run("predict", folder / "price.metaprior", shuffled)
    assert code == 0
    assert "note: columns that the model does not know are ignored: 'weather'." in err
    assert out == run("predict", folder / "price.metaprior", folder / "train.csv")[1]


def test_parquet_in_and_out_says_the_same_as_csv(folder, run, tmp_path):
    pytest.importorskip("pyarrow")
    FRAME.to_parquet(tmp_path / "train.parquet")
    out = tmp_path / "p.parquet"
    assert run("predict", folder / "price.metaprior", tmp_path / "train.parquet", "--out", out)[0] == 0
    expected = metaprior.load(folder / "price.metaprior").predict(FRAME)
    pd.testing.assert_frame_equal(pd.read_parquet(out), expected)


def test_columns_that_identify_rows_are_carried_over_as_they_are(folder, run, tmp_path):
    out = tmp_path / "p.csv"
    run("predict", folder / "price.metaprior", folder / "train.csv", "--id", "id", "--id", "colour", "--out", out)
    found = pd.read_csv(out, dtype=str)
    assert list(found)[:2] == ["id", "colour"]
    assert found["id"].tolist() == FRAME["id"].tolist()
    assert found["colour"].tolist() == FRAME["colour"].tolist()


def test_a_carried_column_may_not_hide_a_prediction(folder, run, csv):
    code, _, err = run("predict", folder / "price.metaprior", csv(FRAME.assign(mean=1)), "--id", "mean")
    assert code == 1
    assert "'mean' cannot be copied" in err


def test_predictions_can_go_to_stdout(folder, run, run_json):
    words = ["predict", folder / "price.metaprior", folder / "train.csv"]
    code, out, _ = run(*words)
    assert code == 0
    assert out.splitlines()[0] == "mean,std,epistemic_std,low_95,high_95"
    assert len(out.splitlines()) == 1 + ROWS
    _, said = run_json(*words)
    assert said["rows"] == len(said["predictions"]) == ROWS
    assert f"{said['predictions'][0]['mean']!r}" == out.splitlines()[1].split(",")[0]


def test_same_command_writes_the_same_content(folder, run, tmp_path):
    out = tmp_path / "again.metaprior"
    assert run(*fit_words(folder / "train.csv", "price", out, *COLUMNS, "--ignore", "size"))[0] == 0
    assert digest(out) == digest(folder / "price.metaprior")


def test_a_kept_run_ends_alike_and_refuses_another_table(folder, run, tmp_path, csv):
    """The kill itself is tested with `fit` (test_checkpoints); here: the folder is used, and is this run's."""
    out, kept = tmp_path / "kept.metaprior", tmp_path / "run"
    words = fit_words(folder / "train.csv", "price", out, *COLUMNS, "--ignore", "size", "--checkpoint", kept)
    assert run(*words)[0] == 0
    assert digest(out) == digest(folder / "price.metaprior")
    assert any(kept.iterdir())
    other = fit_words(csv(FRAME.iloc[::-1]), "price", tmp_path / "o.metaprior", *COLUMNS, "--ignore", "size")
    code, _, err = run(*other, "--checkpoint", kept)
    assert code == 1
    assert "checkpoint" in err


def test_a_model_file_serves_python_too(folder):
    model = metaprior.load(folder / "price.metaprior")
    shuffled = FRAME.sample(frac=1, random_state=0)
    assert_allclose(
        model.predict(shuffled)["mean"], model.predict(FRAME)["mean"].to_numpy()[shuffled.index], rtol=1e-12
    )


def test_numbered_classes_come_back_as_numbers(run, run_json, tmp_path, csv):
    numbered = FRAME.drop(columns=["id", "price"]).assign(size=FRAME["size"].map({"small": 0, "middle": 1, "large": 2}))
    table, model = csv(numbered), tmp_path / "m"
    code, said = run_json(*fit_words(table, "size", model, "--date", "day:%d.%m.%Y"))
    assert (code, said["task"], said["classes"]) == (0, "classification", [0, 1, 2])
    out = run("predict", model, table)[1].splitlines()
    assert out[0] == "class,p_0,p_1,p_2,entropy,mutual_information"
    assert {line.split(",")[0] for line in out[1:]} <= {"0", "1", "2"}


def made(*words, frame=FRAME[["x", "price"]]):
    """Return the estimator that options describe, not fitted."""
    return estimator_of(_parser().parse_args(fit_words("t.csv", "price", "m", *words)), learned_schema(frame, "price"))


def test_options_reach_the_estimator():
    words = ["--input-kernel", "periodic(period=2)@x", "--activation", "relu", "--likelihood", "student_t"]
    words += ["--learning-rate", "0.05", "--batch-size", "10", "--seed", "7", "--hidden", "5,4"]
    words += ["--set", "weight_gp=per_layer", "--set", "local_layers=[0]", "--set", "heteroscedastic_weights=true"]
    expected = {"activation": "relu", "likelihood": "student_t", "learning_rate_init": 0.05, "batch_size": 10}
    expected |= {"random_state": 7, "weight_gp": "per_layer", "local_layers": [0], "heteroscedastic_weights": True}
    expected |= {"hidden_layer_sizes": (5, 4), "n_inducing": 4, "max_iter": 20, "n_predict_draws": 8}
    params = made(*words).get_params()
    assert eqx.tree_equal(params["input_kernel"], kernels.Periodic(2.0, fixed=["period"]).on(0))
    assert {name: params[name] for name in expected} == expected


def test_the_usual_input_kernel_is_that_of_python_and_none_is_the_global_model():
    usual = estimator_of(
        _parser().parse_args(["fit", "t.csv", "--target", "price", "--out", "m"]),
        learned_schema(FRAME[["x", "price"]], "price"),
    )
    assert usual.input_kernel == MetaGPRegressor().input_kernel == "auto"
    assert repr(made().input_kernel) == repr(kernels.RBF())
    assert made("--input-kernel", "none").input_kernel is None


def test_a_fit_tells_which_kernel_was_chosen_and_by_how_many_nats(run, tmp_path, csv):
    words = fit_words(csv(FRAME[["x", "price"]]), "price", tmp_path / "m", "--input-kernel", "auto")
    code, out, _ = run(*words, "--quiet")
    assert code == 0
    assert re.search(r"chosen +\S.*, [0-9.]+ nats (above|below) \S.*, of \d+ candidates", out)


@pytest.mark.parametrize("impute", ["mean", "median"])
def test_filled_gaps_are_remembered(run, tmp_path, csv, impute):
    values, model = FRAME["x"].where(FRAME.index != 3), tmp_path / "m"
    words = [*COLUMNS, "--ignore", "size", "--impute", impute]
    assert run(*fit_words(csv(FRAME.assign(x=values)), "price", model, *words))[0] == 0
    fill = {"mean": np.mean, "median": np.median}[impute](values.dropna().to_numpy())
    gap, given = csv(FRAME.assign(x=None), "gap.csv"), csv(FRAME.assign(x=fill), "given.csv")
    code, out, err = run("predict", model, gap)
    assert (code, out) == (0, run("predict", model, given)[1])
    assert f"note: missing values are filled in: {ROWS} in 'x'." in err


@pytest.mark.slow
def test_defaults_find_a_smooth_function_of_a_number_and_a_category(run, run_json, csv, tmp_path):
    """Noise of 0.2: the RMSE comes near it, and 90 % intervals hold 90 % of 400 new rows within 4 standard errors."""
    rng = np.random.default_rng(1)
    size = 700
    frame = pd.DataFrame({"x": rng.uniform(-3, 3, size), "kind": rng.choice(["a", "b", "c"], size)})
    shift = frame["kind"].map({"a": 0.0, "b": 1.0, "c": -1.0})
    frame["y"] = np.sin(frame["x"]) + shift + 0.2 * rng.standard_normal(size)
    train, test, model = csv(frame[:300], "train.csv"), csv(frame[300:], "test.csv"), tmp_path / "m"
    assert run("fit", train, "--target", "y", "--out", model)[0] == 0
    scores = run_json("evaluate", model, test)[1]["scores"]
    assert scores["rmse"] < 0.25
    assert abs(scores["coverage_90"] - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 400)


def test_dates_in_iso_form_are_found_and_told(run, csv, tmp_path):
    frame = FRAME[["x", "price"]].assign(day=pd.date_range("2024-01-01", periods=ROWS))
    code, out, err = run(*fit_words(csv(frame), "price", tmp_path / "m", "--input-kernel", "rbf@day"))
    assert code == 0
    assert "note: column 'day' is read as dates, in days since the first" in err
    assert "dates         'day', a date from 2024-01-01 to 2024-01-30: in days since the first" in out
    assert "in words      a smooth function of 'day' (over " in out


@pytest.mark.slow
def test_the_weekly_wave_of_daily_sales_is_found_without_a_word(run, run_json, csv, tmp_path):
    """Two years of sales: a trend, a weekly wave with a weekend of its own, and noise of 4 units.

    The last 73 days lie beyond what was fitted. Noise alone gives an RMSE of 4 there, and one year's weekly means 10.
    """
    days = np.arange(730)
    wave = np.array([0, -6, -9, -4, 8, 21, 14])[days % 7]
    units = 200 + 0.05 * days + wave + 4 * np.random.default_rng(3).standard_normal(730)
    sales = pd.DataFrame({"day": pd.date_range("2022-01-03", periods=730).strftime("%Y-%m-%d"), "units": units})
    table, model = csv(sales, "sales.csv"), tmp_path / "m"
    code, said = run_json("fit", table, "--target", "units", "--out", model, "--holdout", "last:0.1")
    assert code == 0
    assert said["columns"] == {"day": "date from 2022-01-03 to 2024-01-02"}
    periods = [float(found) for found in re.findall(r"period=\[?([\d.]+)", said["input_kernel"] or "")]
    assert any(abs(period - 7) < 0.02 for period in periods), said["input_kernel"]
    assert "repeats every 7 days" in said["input_kernel_in_words"]
    assert said["holdout"]["scores"]["rmse"] < 6
    assert "repeats every 7 days" in run("info", model)[1]
