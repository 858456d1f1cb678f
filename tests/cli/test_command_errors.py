"""What goes wrong has a place and an exit code."""

import json
import os

import pytest

from cli_table import COLUMNS, FRAME, digest, fit_words
from edited_files import put_together, taken_apart

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


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
        (["--input-kernel", "rbf +"], "expected NAME, NAME(setting=number), NAME@column or a number"),
        (["--task", "classification", "--likelihood", "poisson"], "--likelihood: classification does not use it"),
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
    assert (code, "is not a metaprior file" in err) == (1, True)


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
    texts, arrays = taken_apart(folder / "price.metaprior")
    content = json.loads(texts["content"])
    content["estimator"]["params"]["estimator"] = {
        "estimator": {"class": stranger, "params": {"command": "echo"}, "state": {}}
    }
    put_together(tmp_path / "m", texts, content, arrays)
    code, _, err = run("info", tmp_path / "m")
    assert (code, "cannot be read by the installed version" in err) == (1, True)
