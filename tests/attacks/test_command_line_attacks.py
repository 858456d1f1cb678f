"""The command line under attack: every failure is one line and its exit code, never a traceback or half a file.

These cases are real processes, or `main` in this process where only the table or the file matters.
"""

import contextlib
import json
import os
import random
import socket
import sys
from pathlib import Path

import pytest

from commands import ASCII, C_LOCALE, FIT, ROWS, STRICT_C_LOCALE, TABLE, Run, assert_one_line, run_command, run_unread
from metaprior.cli import main

pytest.importorskip("pandas")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="pipes, devices and locales of Linux"),
    pytest.mark.filterwarnings("ignore"),
]
FILES = Path(__file__).parents[1] / "files"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table and a model that was fitted to it."""
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "t.csv").write_text(TABLE, encoding="utf-8")
    with contextlib.chdir(folder):
        assert main([*FIT, "--ignore", "id", "--quiet"]) == 0
    return folder


# --- streams that are closed, full, or that nobody reads --------------------------------------------------------------

PREDICT, INFO, ABSENT = ("predict", "m.metaprior", "t.csv"), ("info", "m.metaprior"), ("info", "absent")
COMPARE = ("compare", "t.csv", "--target", "preis", "--ignore", "id", "--methods", "linear", "--folds", "2")
EXPLAIN = ("explain", "m.metaprior", "t.csv", "--out", "new")
#: The words, the redirection, the exit code and a part of the line on stderr.
STREAMS = [
    (("fit", "-", "--target", "y", "--out", "new"), "<&-", 1, "stdin is closed"),
    (("predict", "m.metaprior", "-"), "<&-", 1, "stdin is closed"),
    (("evaluate", "m.metaprior", "-"), "<&-", 1, "stdin is closed"),
    (("compare", "-", "--target", "y"), "<&-", 1, "stdin is closed"),
    (("explain", "m.metaprior", "-", "--out", "new"), "<&-", 1, "stdin is closed"),
    (COMPARE, ">&-", 1, "stdout is closed"),
    (EXPLAIN, ">&-", 1, "stdout is closed"),
    (("compare", "--help"), ">/dev/full", 1, "cannot be written to stdout (No space left"),
    (("--version",), ">&-", 1, "stdout is closed"),
    (("--help",), ">&-", 1, "stdout is closed"),
    (("fit", "--help"), ">&-", 1, "stdout is closed"),
    (INFO, ">&-", 1, "stdout is closed"),
    ((*INFO, "--json"), ">&-", 1, "stdout is closed"),
    (PREDICT, ">&-", 1, "stdout is closed"),
    ((*FIT, "--force"), ">&-", 1, "stdout is closed"),
    (ABSENT, ">&-", 1, "stdout is closed"),
    (("--version",), ">/dev/full", 1, "cannot be written to stdout (No space left"),
    (("--help",), ">/dev/full", 1, "cannot be written to stdout (No space left"),
    (("--version",), "1</dev/null", 1, "cannot be written to stdout (Bad file descriptor"),
    ((*ABSENT, "--json"), ">/dev/full", 1, "there is no file absent"),
    ((*ABSENT, "--json"), ">&-", 1, "stdout is closed"),
    (("fit", "--json"), ">/dev/full", 2, "arguments are required: --target, TABLE, --out"),
]


@pytest.mark.parametrize(("words", "redirect", "code", "part"), STREAMS)
def test_a_stream_that_cannot_be_used_is_one_line(place, words, redirect, code, part):
    before = (place / "m.metaprior").read_bytes()
    assert_one_line(run_command(*words, folder=place, redirect=redirect), code, part)
    assert (place / "m.metaprior").read_bytes() == before
    assert not (place / "new").exists()


SILENT = [
    (ABSENT, "2>&-", 1),
    (ABSENT, "2>/dev/full", 1),
    (("--version",), "2>&-", 0),
    (ABSENT, "<&- 2>&-", 1),
    (ABSENT, "<&- >&- 2>&-", 1),
    (("fly",), "2>/dev/full", 2),
]


@pytest.mark.parametrize(("words", "redirect", "code"), SILENT)
def test_without_stderr_the_exit_code_stays_and_nothing_strays_to_stdout(place, words, redirect, code):
    ran = run_command(*words, folder=place, redirect=redirect)
    assert (ran.code, ran.err) == (code, "")
    assert ran.out.startswith(b"metaprior ") if code == 0 else ran.out == b""


def test_a_reader_that_leaves_early_gives_the_code_of_a_broken_pipe(place):
    ran = run_unread("--help", folder=place)
    assert (ran.code, ran.err) == (141, "")


def test_an_error_in_json_that_nobody_reads_goes_to_stderr(place):
    assert_one_line(run_unread(*ABSENT, "--json", folder=place), 1, "there is no file absent")


RESULTS = [
    (COMPARE, ">/dev/full", 1, "cannot be written to stdout"),
    ((*COMPARE, "--json"), ">/dev/full", 1, "cannot be written to stdout"),
    (INFO, ">/dev/full", 1, "cannot be written to stdout"),
    ((*INFO, "--json"), ">/dev/full", 1, "cannot be written to stdout"),
    (PREDICT, ">/dev/full", 1, "cannot be written to stdout"),
    ((*PREDICT, "--json"), ">/dev/full", 1, "cannot be written to stdout"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "redirect", "code", "part"), RESULTS)
def test_a_result_on_a_full_disk_is_one_line(place, words, redirect, code, part):
    assert_one_line(run_command(*words, "--quiet", folder=place, redirect=redirect), code, part)


@pytest.mark.slow
@pytest.mark.parametrize("words", [(*INFO, "--json"), PREDICT, (*PREDICT, "--json"), INFO, (*COMPARE, "--quiet")])
def test_a_result_that_nobody_reads_gives_the_code_of_a_broken_pipe(place, words):
    ran = run_unread(*words, folder=place)
    assert (ran.code, ran.err) == (141, "")


@pytest.mark.slow
@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"])
def test_a_fit_does_not_need_stdin_and_stderr(place, tmp_path, redirect):
    """Nor does anything that a library prints there end in the model's file."""
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    ran = run_command(*FIT, "--ignore", "id", folder=tmp_path, redirect=redirect)
    assert ran.code == 0
    assert sorted(os.listdir(tmp_path)) == ["m.metaprior", "t.csv"]
    assert main(["info", str(tmp_path / "m.metaprior")]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["1000000000", "20000,20000"])
def test_a_network_that_does_not_fit_into_memory_is_one_line(place, hidden):
    """Within 5 GB of addresses, so that it cannot take the memory of others."""
    words = ["fit", "t.csv", "--target", "preis", "--out", "new", "--hidden", hidden, "--max-iter", "5", "--quiet"]
    ran = run_command(*words, folder=place, limit=5_000_000)
    assert_one_line(ran, 1, "there is not enough memory")
    assert not (place / "new").exists()


# --- text that is not ASCII, and names that are not text --------------------------------------------------------------

UNDECODABLE = b"gr\xf6\xdfe.metaprior"
NAMES = [
    (["info", "größe.metaprior"], ASCII, r"there is no file gr\xf6\xdfe.metaprior"),
    (["info", "größe.metaprior"], C_LOCALE, "there is no file größe.metaprior"),
    (["info", "größe.metaprior"], STRICT_C_LOCALE, r"there is no file gr\udcc3\udcb6\udcc3\udc9fe.metaprior"),
    (["info", UNDECODABLE], {}, r"there is no file gr\udcf6\udcdfe.metaprior"),
    (["info", UNDECODABLE], ASCII, r"there is no file gr\udcf6\udcdfe.metaprior"),
    (["info", "a\nb\x1b[31m\x07\u202e"], {}, r"there is no file a b\x1b[31m\x07\u202e"),
    (["fit", "t.csv", "--target", "höhe", "--out", "new"], ASCII, r"no column 'h\xf6he'; it has 'gr\xf6\xdfe'"),
    (["fit", "t.csv", "--target", "höhe", "--out", "new"], C_LOCALE, "no column 'höhe'; it has 'größe'"),
    (["fit", "t.csv", "--target", b"h\xf6he", "--out", "new"], {}, r"no column 'h\udcf6he'; it has 'größe'"),
    (
        ["fit", "t.csv", "--target", "färbe", "--out", "new", "--date", "größe"],
        ASCII,
        r"column 'gr\xf6\xdfe': expected",
    ),
    (["fit", "t.csv", "--target", "preis", "--out", b"\xff/m"], {}, r"there is no folder \udcff"),
]


@pytest.mark.parametrize(("words", "env", "part"), NAMES)
def test_names_that_cannot_be_printed_are_escaped(place, words, env, part):
    code = 1
    assert_one_line(run_command(*words, folder=place, env=env), code, part)
    assert not (place / "new").exists()


def test_an_error_in_json_has_the_bytes_of_a_name(place):
    ran = run_command("info", UNDECODABLE, "--json", folder=place, env=ASCII)
    message = json.loads(ran.out)["error"]["message"]
    assert ran.code == 1
    assert UNDECODABLE in os.fsencode(message)


@pytest.mark.slow
@pytest.mark.parametrize("env", [ASCII, C_LOCALE, STRICT_C_LOCALE, {}])
def test_predictions_are_the_same_bytes_in_every_locale(place, tmp_path, env):
    words = ["predict", place / "m.metaprior", place / "t.csv", "--id", "id", "--quiet"]
    printed = run_command(*words, folder=tmp_path, env=env)
    written = run_command(*words, "--out", b"\xff.csv", folder=tmp_path, env=env)
    assert (printed.code, written.code) == (0, 0)
    assert Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")).read_bytes() == printed.out
    assert printed.out.count(b"\n") == ROWS + 1


@pytest.mark.slow
@pytest.mark.parametrize("env", [ASCII, C_LOCALE, STRICT_C_LOCALE])
def test_info_prints_names_in_every_locale(place, env):
    text = run_command(*INFO, folder=place, env=env)
    data = run_command(*INFO, "--json", folder=place, env=env)
    assert (text.code, data.code, text.err, data.err) == (0, 0, "", "")
    assert list(json.loads(data.out)["columns"]) == ["größe", "färbe"]


# --- options ----------------------------------------------------------------------------------------------------------

OPTIONS = [
    (("--encoding", "base64"), "there is no encoding 'base64'"),
    (("--encoding", "hex"), "there is no encoding 'hex'"),
    (("--encoding", "rot13"), "there is no encoding 'rot13'"),
    (("--encoding", "undefined"), "there is no encoding 'undefined'"),
    (("--encoding", b"\xff"), r"there is no encoding '\udcff'"),
    (("--separator", "\n"), "neither a quotation mark nor the end of a line"),
    (("--separator", '"'), "neither a quotation mark nor the end of a line"),
    (("--decimal", "7"), "expected one character, a point or a comma; got '7'"),
    (("--decimal", "\n"), r"expected one character, a point or a comma; got '\n'"),
    (("--decimal", ";", "--separator", ";"), "expected two different characters"),
    (("--seed=-1",), "--seed: expected a whole number from 0 to 4294967295; got '-1'"),
    (("--seed", "9" * 5000), "--seed: expected a whole number from 0 to 4294967295"),
    (("--hidden", "9" * 5000), "--hidden: expected whole numbers and commas"),
    (("--set", "tol=" + "[" * 100_000), "tol: expected a value of at most 500 characters; got 100000"),
    (("--set", "tol=" + "9" * 5000), "tol: expected a value of at most 500 characters; got 5000"),
    (("--set", "tol"), "--set: expected NAME=VALUE; got 'tol'"),
    (("--checkpoint", ""), "--checkpoint: expected the name of a folder"),
    (("--holdout", "9" * 5000), "--holdout: expected a part of the rows between 0 and 1"),
    (("--holdout", "last:\x1b[31m"), r"between 0 and 1, such as 0.2, or last:0.2 for those with the latest dates; got"),
    (("--holdout", b"\xff"), r"got '\udcff'"),
    (("--wings\x1b[31m",), r"unrecognized arguments: --wings\x1b[31m"),
]


@pytest.mark.parametrize(("words", "part"), OPTIONS)
def test_a_hostile_option_is_one_line(place, words, part):
    ran = run_command("fit", "t.csv", "--target", "preis", "--out", "new", *words, folder=place)
    assert_one_line(ran, 2, part)
    assert len(ran.err) < 2500


MODEL_OPTIONS = [
    (("--set", "tol=[[["), "tol: expected a number of at least 0; got '[[['"),
    (("--set", "tol=" + "[" * 400), "tol: expected a number of at least 0; got '[[["),
    (("--set", "tol=" + "1" * 400), "tol: expected a number of at least 0; got inf"),
    (("--set", "tol=1e400"), "tol: expected a number of at least 0; got inf"),
    (("--set", "tol=NaN"), "tol: expected a number of at least 0; got nan"),
    (("--set", '__class__={"a": 1}'), "has no parameter '__class__'"),
    (("--set", "=5"), "has no parameter ''"),
    (("--set", "hidden_layer_sizes=[[1]]"), "hidden_layer_sizes: expected whole numbers"),
    (("--input-kernel", "+".join(["rbf"] * 2000)), "expected at most 50 kernels and numbers; got 2000"),
    (("--input-kernel", "+" * 50_000), "expected at most 50 kernels and numbers; got 50001"),
    (("--input-kernel", "(" * 50_000), "--input-kernel: expected NAME"),
    (("--input-kernel", "nan*rbf"), "scale must be a positive finite number; got nan"),
    (("--input-kernel", "rbf(lengthscale=1e400)"), "lengthscale must be a positive finite number"),
    (("--ignore", "preis"), "'preis' is the column to predict"),
    (("--date", "preis"), "'preis' is the column to predict"),
    (("--date", "größe", "--categorical", "größe"), "expected one of them for the column 'größe'"),
]


COMPARE_OPTIONS = [
    (("--folds", "9" * 5000), "--folds: expected a whole number of at least 1"),
    (("--folds", "1.5"), "--folds: expected a whole number of at least 1; got '1.5'"),
    (("--repeats", "0"), "--repeats: expected a whole number of at least 1; got '0'"),
    (("--max-rows", "-1"), "--max-rows: expected a whole number of at least 1"),
    (("--methods", "\x1b[31m"), r"--methods: expected some of metaprior, exact-gp"),
    (("--methods", "\udcff,linear"), r"got '\udcff'"),
    (("--methods", ",,,"), "--methods: expected names of methods"),
    (("--methods", "os:system"), "--methods: expected some of metaprior"),
    (("--sort", "fit_seconds"), "--sort: invalid choice: 'fit_seconds'"),
    (("--holdout", "last:0.2:\x1b[31m"), r"there is no input column '\x1b[31m'"),
    (("--holdout", "last:0.2"), "expected last:0.2:COLUMN, with the column that orders the rows; no column has dates"),
    (("--holdout", "0.999"), "expected at least 1 row to hold out and 2 to fit; of 12 rows, a part of 0.999 leaves 11"),
]


@pytest.mark.parametrize(("words", "part"), COMPARE_OPTIONS)
def test_a_comparison_of_hostile_options_is_one_line(run_here, place, words, part):
    base = COMPARE if "--holdout" not in words else COMPARE[:-2]  # the folds
    ran = run_here(*base, *words, "--out", "new", "--quiet")
    assert_one_line(ran, 1 if "no input column" in part else 2, part)
    assert not (place / "new").exists()


@pytest.fixture
def run_here(place, capfd, monkeypatch):
    """Run a command in this process, in the folder, and return how it ended."""

    def call(*words):
        monkeypatch.chdir(place)
        capfd.readouterr()
        code = main([os.fspath(word) for word in words])
        captured = capfd.readouterr()
        return Run(code, captured.out.encode(), captured.err)

    return call


@pytest.mark.parametrize(("words", "part"), MODEL_OPTIONS)
def test_an_option_that_fits_no_model_is_one_line(run_here, place, words, part):
    ran = run_here("fit", "t.csv", "--target", "preis", "--out", "new", *words, "--quiet")
    assert_one_line(ran, 2, part)
    assert not (place / "new").exists()


# --- files that are no models -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A folder of things that are not models: a FIFO, a socket, a folder, and files of other kinds."""
    folder = tmp_path_factory.mktemp("odd")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(folder / "socket"))
    (folder / "folder").mkdir()
    for name, content in {
        "empty": b"",
        "text": b"hello\n",
        "random": random.Random(0).randbytes(50_000),
        "zeros": bytes(5000),
        "header": (2**63).to_bytes(8, "little") + b"{}",
        "json": (2).to_bytes(8, "little") + b"{}",
        "nested": (50_000).to_bytes(8, "little") + b"[" * 50_000,
        "csv": TABLE.encode(),
    }.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("pipe", "is a pipe"),
        ("socket", "is a device or a socket"),
        ("folder", "is a folder"),
        ("none", "there is no file"),
    ],
)
@pytest.mark.parametrize("command", ["info", "predict", "fit", "compare", "explain"])
def test_what_is_no_file_is_not_opened(odd, place, command, name, part):
    """Nothing waits for a pipe that nobody writes to."""
    words = {
        "info": [odd / name],
        "predict": [place / "m.metaprior", odd / name],
        "fit": [odd / name, "--target", "y", "--out", "new"],
        "compare": [odd / name, "--target", "y"],
        "explain": [place / "m.metaprior", odd / name, "--out", "new"],
    }[command]
    assert_one_line(run_command(command, *words, folder=place), 1, "expected a file; ", part)


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/full", "/dev/urandom"])
def test_a_device_is_not_read(place, device):
    assert_one_line(run_command("info", device, folder=place), 1, f"{device} is a device")


@pytest.mark.parametrize("name", ["empty", "text", "random", "zeros", "header", "json", "nested", "csv"])
def test_a_file_that_is_no_model_is_told(odd, run_here, name):
    explain = ["explain", odd / name, "t.csv", "--out", "new"]
    for words in (["info", odd / name], ["predict", odd / name, "t.csv"], explain):
        assert_one_line(run_here(*words), 1, str(odd / name), "metaprior")


@pytest.mark.parametrize("name", ["pipe", "socket", "folder"])
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_only_files_are_overwritten(odd, run_here, name, force):
    kind = (odd / name).lstat().st_mode
    for words in (PREDICT, EXPLAIN[:3], COMPARE):
        ran = run_here(*words, "--out", odd / name, *force)
        assert_one_line(ran, 1, "--out: ")
        assert (odd / name).lstat().st_mode == kind


@pytest.mark.parametrize("kind", ["active", "bandit", "optimise"])
def test_info_says_what_a_loops_file_is(run_here, kind):
    path = FILES / f"loop-{kind}.metaprior"
    ran = run_here("info", path)
    assert (ran.code, ran.err) == (0, "")
    assert f"a decision loop of kind '{kind}', format ".encode() in ran.out
    assert f"{path.stat().st_size:,} bytes".encode() in ran.out
    data = json.loads(run_here("info", path, "--json").out)
    assert data["loop"].startswith(f"metaprior.decisions.{kind}.")
    assert {"kind": kind, "bytes": path.stat().st_size}.items() <= data.items()


def test_info_says_what_a_checkpoint_is(run_here, tmp_path):
    words = ["--ignore", "id", "--quiet", "--checkpoint", tmp_path / "run"]
    assert run_here(*FIT[:4], "--out", tmp_path / "m", *FIT[6:], *words).code == 0
    [path] = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    ran = run_here("info", path)
    assert (ran.code, ran.err) == (0, "")
    assert b"a checkpoint of a fit, format " in ran.out
