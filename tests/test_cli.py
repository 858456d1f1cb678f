"""The command line: a table becomes a model, a model predicts a table, and what goes wrong has a place and a code."""

import json
import os
import subprocess
import sys

import equinox as eqx
import numpy as np
import pytest
from numpy.testing import assert_allclose
from safetensors.numpy import save_file

import metaprior
from metaprior import MetaGPClassifier, MetaGPRegressor, cli, kernels, metrics
from metaprior.cli import main
from metaprior.cli.estimator_options import estimator_of
from metaprior.cli.kernel_text import kernel_in_words
from metaprior.cli.program import _parser, commands
from metaprior.cli.result import UsageError
from metaprior.io.saving import FORMAT, _digest, _read
from metaprior.tables import TableError, learned_schema, read_table

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
ROWS = 30
FRAME = pd.DataFrame(
    {
        "id": [f"{number:03d}" for number in range(ROWS)],
        "x": RNG.uniform(-2, 2, ROWS),
        "colour": RNG.choice(["red", "green", "blue"], ROWS),
        "day": pd.date_range("2024-01-01", periods=ROWS).strftime("%d.%m.%Y"),
        "member": RNG.integers(0, 2, ROWS) == 1,
    }
)
FRAME["price"] = 2 * FRAME["x"] + (FRAME["colour"] == "red") + 0.1 * RNG.standard_normal(ROWS)
FRAME["size"] = np.where(FRAME["x"] > 0.7, "large", np.where(FRAME["x"] > -0.7, "middle", "small"))
#: The columns as numbers, by hand, in the order of the table.
NUMBERS = np.column_stack(
    [
        FRAME["x"],
        *[(FRAME["colour"] == value).to_numpy(float) for value in ("blue", "green", "red")],
        np.arange(ROWS),
        FRAME["member"].to_numpy(float),
    ]
)
SMALL = {"hidden_layer_sizes": (3,), "n_inducing": 4, "max_iter": 20, "n_predict_draws": 8}
WORDS = ["--hidden", "3", "--n-inducing", "4", "--max-iter", "20", "--set", "n_predict_draws=8"]
COLUMNS = ["--ignore", "id", "--date", "day:%d.%m.%Y"]

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


def fit_words(table, target, out, *more):
    return ["fit", str(table), "--target", target, "--out", str(out), *WORDS, *more]


def digest(path):
    """Return the digest of a model's content (the order of a file's header is not fixed)."""
    return _read(path)[0]["sha256"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a training table and two models, of `price` and of `size`."""
    place = tmp_path_factory.mktemp("tables")
    FRAME.to_csv(place / "train.csv", index=False)
    for target, other in (("price", "size"), ("size", "price")):
        words = fit_words(place / "train.csv", target, place / f"{target}.metaprior", *COLUMNS, "--ignore", other)
        assert main([*words, "--quiet"]) == 0
    return place


@pytest.fixture
def run(capsys):
    """Run a command and return its exit code, stdout and stderr."""

    def call(*words):
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def run_json(run):
    """Run a command with --json and return its exit code and what it says."""

    def call(*words):
        code, out, _ = run(*words, "--json")
        return code, json.loads(out)

    return call


@pytest.fixture
def csv(tmp_path):
    def write(frame, name="new.csv"):
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write


@pytest.fixture(scope="module")
def by_hand():
    """The regression that the command line should have fitted, from numbers encoded by hand."""
    return MetaGPRegressor(input_kernel=kernels.RBF(), random_state=0, **SMALL).fit(NUMBERS, FRAME["price"])


# --- fit and predict ------------------------------------------------------------------


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
    assert "'mean' cannot be carried over" in err


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


def test_an_rbf_input_kernel_is_usual_and_none_is_the_global_model():
    assert repr(made().input_kernel) == repr(kernels.RBF())
    assert made("--input-kernel", "none").input_kernel is None


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


# --- evaluate and info ----------------------------------------------------------------


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
    assert "knows no columns of a table" in err


# --- what goes wrong ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["fit", "t.csv", "--out", "m"], "arguments are required: --target"),
        (["fit", "t.csv", "--target", "y"], "arguments are required: --out"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--wings", "2"], "unrecognized arguments: --wings"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--hidden", "many"], "--hidden: expected whole numbers"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--set", "depth"], "--set: expected NAME=VALUE"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--encoding", "klingon"], "there is no encoding 'klingon'"),
        (["fit", "t.csv", "--target", "y", "--out", "m", "--separator", "::"], "--separator: expected one character"),
        (["predict", "m", "t.csv", "--interval", "90"], "--interval: expected a number between 0 and 1"),
    ],
)
def test_a_command_that_is_not_understood_has_exit_code_2(run, run_json, words, message):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message in err
    code, said = run_json(*words)
    assert code == 2
    assert message in said["error"]["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "depth=3"], "MetaGPRegressor has no parameter 'depth'; it has"),
        (["--max-iter", "0"], "max_iter: expected a whole number of at least 1; got 0"),
        (["--input-kernel", "fractal"], "--input-kernel: expected a kernel"),
        (["--input-kernel", "rbf(period=3)"], r"rbf has the settings ['lengthscale'], not 'period'"),
        (["--input-kernel", "rbf(lengthscale=long)"], "expected setting=number; got 'lengthscale=long'"),
        (["--input-kernel", "rbf +"], "expected NAME, NAME(setting=number) or NAME@column"),
        (["--task", "classification", "--likelihood", "poisson"], "--likelihood: classes need none"),
        (["--decimal", "comma"], "--decimal: expected one character"),
    ],
)
def test_options_that_fit_no_model_have_exit_code_2(run, tmp_path, csv, words, message):
    frame = FRAME[["x", "price"]] if "--task" not in words else FRAME[["x"]].assign(price=["a", "b"] * 15)
    code, out, err = run(*fit_words(csv(frame), "price", tmp_path / "m"), *words)
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "m").exists()


def test_problems_with_data_have_exit_code_1_and_their_place_in_json(folder, run_json, csv, tmp_path):
    path = csv(FRAME.assign(colour=["red", "pink", *FRAME["colour"][2:]]))
    code, said = run_json("predict", folder / "price.metaprior", path)
    assert code == 1
    assert said["error"].pop("message").startswith("row 2, column 'colour': the category 'pink'")
    assert said["error"] == {"type": "TableError", "row": 2, "column": "colour", "value": "pink"}
    assert run_json("predict", folder / "price.metaprior", path, "--allow-unseen")[0] == 0

    gap = csv(FRAME[["x", "price"]].assign(x=FRAME["x"].where(FRAME.index != 4)))
    code, said = run_json(*fit_words(gap, "price", tmp_path / "m"))
    assert (code, said["error"]["row"], said["error"]["column"]) == (1, 5, "x")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (b"", [], "is empty"),
        (b"x;price\n1;2\n2;3\n", [], "--separator ';'"),
        (b"x,price\n1,2\n\xe9,3\n", [], "--encoding cp1252"),
        (b"x,x,price\n1,2,3\n4,5,6\n", [], "more than one column called 'x'"),
        (b"x,price\n1,2\n1,3\n", [], "no column is left to predict 'price' from"),
        (b"x,price\n1,2\n3,2\n", [], "every value to predict is 2"),
        (b"x,Price\n1,2\n3,4\n", [], "no column 'price' (did you mean 'Price'?)"),
        (b"x,price\n1,2\n3,4.5\n", ["--date", "when"], "no column 'when'"),
        (b"x,price\n1,2\n3,4.5\n", ["--input-kernel", "rbf@z"], "there is no input column 'z'"),
    ],
)
def test_a_table_that_cannot_be_fitted_has_exit_code_1(run, tmp_path, content, words, message):
    (tmp_path / "t.csv").write_bytes(content)
    code, out, err = run(*fit_words(tmp_path / "t.csv", "price", tmp_path / "m"), *words)
    assert (code, out) == (1, "")
    assert message in err
    assert os.listdir(tmp_path) == ["t.csv"]


def test_absent_files_are_named(run, tmp_path, folder):
    code, _, err = run(*fit_words(tmp_path / "no.csv", "y", tmp_path / "m"))
    assert (code, "there is no file" in err) == (1, True)
    code, _, err = run("predict", tmp_path / "no.metaprior", folder / "train.csv")
    assert (code, "there is no file" in err) == (1, True)
    (tmp_path / "bad").write_text("hello")
    code, _, err = run("info", tmp_path / "bad")
    assert (code, "is no file of metaprior" in err) == (1, True)


def test_columns_that_are_absent_are_named(folder, run, csv):
    code, _, err = run("predict", folder / "price.metaprior", csv(FRAME.drop(columns=["x", "colour"])))
    assert code == 1
    assert "the table has no column 'x', 'colour'; the model needs 'x', 'colour', 'day', 'member'" in err


def test_nothing_is_overwritten_without_force(folder, run, tmp_path):
    out = tmp_path / "precious"
    out.write_text("precious")
    words = ["predict", folder / "price.metaprior", folder / "train.csv", "--out", out]
    code, _, err = run(*words)
    assert (code, out.read_text()) == (1, "precious")
    assert "--force to overwrite it" in err
    assert run(*words, "--force")[0] == 0
    assert out.read_text().startswith("mean,")

    out.write_text("precious")
    words = fit_words(folder / "train.csv", "price", out, *COLUMNS, "--ignore", "size")
    assert (run(*words)[0], out.read_text()) == (1, "precious")
    assert run(*words, "--force")[0] == 0
    assert digest(out) == digest(folder / "price.metaprior")


@pytest.mark.parametrize(("out", "message"), [("", "is a folder"), ("no/where/m", "there is no folder")])
def test_an_output_that_cannot_be_written_is_told_before_the_work(run, tmp_path, out, message):
    code, _, err = run(*fit_words(tmp_path / "not there either.csv", "y", tmp_path / out))
    assert code == 1
    assert message in err


def test_an_altered_model_is_told(folder, run, tmp_path):
    content = bytearray((folder / "price.metaprior").read_bytes())
    content[-3] ^= 1
    (tmp_path / "m").write_bytes(content)
    code, _, err = run("predict", tmp_path / "m", folder / "train.csv")
    assert (code, "was altered" in err) == (1, True)


@pytest.mark.parametrize(
    "stranger", ["os:system", "subprocess:Popen", "metaprior.io.saving:_Writer", "metaprior.cli.program:main"]
)
def test_a_model_file_can_hold_no_other_estimator(folder, run, tmp_path, stranger):
    """Even with a right digest."""
    header, arrays = _read(folder / "price.metaprior")
    content = json.loads(header["content"])
    content["estimator"]["params"]["estimator"] = {
        "estimator": {"class": stranger, "params": {"command": "echo"}, "state": {}}
    }
    text = json.dumps(content)
    header = {"format": f"metaprior {FORMAT}", "content": text, "sha256": _digest(text, arrays)}
    save_file(arrays, tmp_path / "m", header)
    code, _, err = run("info", tmp_path / "m")
    assert (code, "does not understand" in err) == (1, True)


# --- the program ----------------------------------------------------------------------


def test_every_command_has_help_with_examples(capsys):
    assert {"fit", "predict", "evaluate", "info"} <= set(commands())
    for name in commands():
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        text = capsys.readouterr().out
        assert ended.value.code == 0
        assert f"\nexamples:\n  metaprior {name} " in text or f"| metaprior {name} " in text
        assert "--json" in text


def test_a_new_file_is_a_new_command(tmp_path, monkeypatch, run):
    (tmp_path / "greet.py").write_text(
        "from metaprior.cli.result import Result\n"
        "SUMMARY, EXAMPLES = 'say hello', '  metaprior greet you'\n"
        "def configure(parser): parser.add_argument('name')\n"
        "def run(args): return Result({'hello': args.name}, f'hello {args.name}')\n"
    )
    monkeypatch.setattr(cli, "__path__", [*cli.__path__, str(tmp_path)])
    try:
        assert run("greet", "you") == (0, "hello you\n", "")
        assert json.loads(run("greet", "you", "--json")[1]) == {"hello": "you"}
    finally:
        sys.modules.pop("metaprior.cli.greet", None)


def test_numbers_that_are_not_finite_are_null_in_json(tmp_path, monkeypatch, run):
    monkeypatch.setattr(cli.info, "run", lambda args: cli.info.Result({"a": [np.float64("nan"), np.int64(3)]}, ""))
    assert json.loads(run("info", "m", "--json")[1]) == {"a": [None, 3]}


def test_a_mistake_of_the_program_is_not_hidden(monkeypatch):
    def wrong(args):
        raise ZeroDivisionError

    monkeypatch.setattr(cli.info, "run", wrong)
    with pytest.raises(ZeroDivisionError):
        main(["info", "m"])


def test_quiet_is_quiet(folder, run, csv):
    extra = csv(FRAME.assign(weather="fine"))
    assert run("predict", folder / "price.metaprior", extra, "--quiet")[2] == ""


def metaprior_process(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "metaprior", *map(str, words)], capture_output=True, text=True, **options
    )


@pytest.mark.slow
def test_a_process_keeps_progress_off_stdout(folder, tmp_path):
    words = fit_words(folder / "train.csv", "price", tmp_path / "m", *COLUMNS, "--ignore", "size")
    ran = metaprior_process(*words, "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["rows"] == ROWS
    assert "ELBO" in ran.stderr
    assert digest(tmp_path / "m") == digest(folder / "price.metaprior")


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from metaprior.cli import main\n"
        "try: main(['fit', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('jax', 'pandas', 'sklearn', 'numpy') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1] == "[]", ran.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes of another kind")
def test_a_reader_that_leaves_early_is_no_error(folder):
    many = pd.concat([FRAME[["x", "colour", "day", "member"]]] * 100)
    words = [sys.executable, "-m", "metaprior", "predict", str(folder / "price.metaprior"), "-"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    process.stdin.write(many.to_csv(index=False))
    process.stdin.close()
    assert process.wait() == 0, process.stderr.read()
    assert process.stderr.read() == ""
    process.stderr.close()


# --- kernels in words -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("rbf", kernels.RBF()),
        (" Matern32 ", kernels.Matern32()),
        ("rbf(lengthscale=2.5)", kernels.RBF(2.5, fixed=["lengthscale"])),
        ("periodic(period=7, lengthscale=1e+0)@day", kernels.Periodic(7.0, 1.0, fixed=["period", "lengthscale"]).on(3)),
        (
            "linear@x + rbf * constant(value=2)",
            kernels.Linear().on(0) + kernels.RBF() * kernels.Constant(2.0, fixed=["value"]),
        ),
        ("rbf@colour,day", kernels.RBF().on(1, 2, 3)),
        ("0.5 + 2 * rbf@x", 0.5 + 2 * kernels.RBF().on(0)),
    ],
)
def test_a_kernel_in_words_is_the_kernel_in_python(text, kernel):
    frame = pd.DataFrame({"x": [0.0, 1.0], "colour": ["a", "b"], "day": [1, 2], "y": [0.1, 0.2]})
    schema = learned_schema(frame, "y")
    assert eqx.tree_equal(kernel_in_words(text, schema), kernel)


def test_a_kernel_on_no_column_is_told():
    schema = learned_schema(FRAME[["x", "price"]], "price")
    with pytest.raises(TableError, match="no input column 'z'"):
        kernel_in_words("rbf@z", schema)
    with pytest.raises(UsageError, match="expected NAME"):
        kernel_in_words("2 * rbf(", schema)
    with pytest.raises(UsageError, match="expected NAME.*got a number, '2 \\* 3'"):
        kernel_in_words("2 * 3", schema)


# --- no options at all ------------------------------------------------------------------


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
