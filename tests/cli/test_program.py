"""The program: its commands, its help, what it prints where, and kernels in words."""

import json
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint

import equinox as eqx
import numpy as np
import pytest

from cli_table import COLUMNS, FRAME, ROWS, digest, fit_words
from metaprior import kernels
from metaprior.cli import command, commands, main
from metaprior.cli.command import GROUP, all_commands
from metaprior.cli.commands import info
from metaprior.cli.kernel_text import kernel_in_words
from metaprior.cli.result import Result, UsageError
from metaprior.tables import TableError, learned_schema

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:the median distance")


def test_every_command_has_help_with_examples(capsys):
    assert {"fit", "predict", "evaluate", "info"} <= set(all_commands())
    for name in all_commands():
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        text = capsys.readouterr().out
        assert ended.value.code == 0
        assert f"\nexamples:\n  metaprior {name} " in text or f"| metaprior {name} " in text
        assert "--json" in text


GREETING = """
from metaprior.cli.result import Result
SUMMARY, EXAMPLES = 'say hello', '  metaprior greet you'
def configure(parser): parser.add_argument('name')
def run(args): return Result({'hello': args.name}, f'hello {args.name}')
"""


def test_a_new_file_is_a_new_command(tmp_path, monkeypatch, run):
    (tmp_path / "greet.py").write_text(GREETING)
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    try:
        assert run("greet", "you") == (0, "hello you\n", "")
        assert json.loads(run("greet", "you", "--json")[1]) == {"hello": "you"}
    finally:
        sys.modules.pop("metaprior.cli.commands.greet", None)


@pytest.fixture
def added(monkeypatch):
    """Let these be the only commands that other packages add."""

    def add(**modules):
        found = [EntryPoint(name, module, GROUP) for name, module in modules.items()]
        monkeypatch.setattr(command, "entry_points", lambda group: found if group == GROUP else [])

    return add


def test_another_package_adds_a_command_by_an_entry_point(tmp_path, monkeypatch, run, added):
    (tmp_path / "greeting.py").write_text(GREETING)
    monkeypatch.syspath_prepend(tmp_path)
    added(greet="greeting")
    assert run("greet", "you") == (0, "hello you\n", "")


def test_an_entry_point_does_not_replace_a_command_of_the_library(added):
    added(info="metaprior.cli.commands.fit")
    assert all_commands()["info"] is info


@pytest.mark.parametrize("words", [["reproduce", "--list"], ["report", "results", "--json"], ["reproduce", "--help"]])
def test_without_the_reproduction_its_commands_say_how_to_install_it(words, run, added, capsys):
    added()
    code, out, err = run(*words)
    assert code == 2
    assert f"'{words[0]}' is not installed" in out + err
    assert "pip install -e reproduction" in out + err


def test_without_the_reproduction_help_does_not_name_its_commands(added, capsys):
    added()
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "reproduce" not in capsys.readouterr().out


def test_numbers_that_are_not_finite_are_null_in_json(tmp_path, monkeypatch, run):
    monkeypatch.setattr(info, "run", lambda args: Result({"a": [np.float64("nan"), np.int64(3)]}, ""))
    assert json.loads(run("info", "m", "--json")[1]) == {"a": [None, 3]}


def test_a_mistake_of_the_program_is_not_hidden(monkeypatch):
    def wrong(args):
        raise ZeroDivisionError

    monkeypatch.setattr(info, "run", wrong)
    with pytest.raises(ZeroDivisionError):
        main(["info", "m"])


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("RESOURCE_EXHAUSTED: Out of memory\nallocating 9 bytes.")]
)
def test_too_little_memory_is_one_line(monkeypatch, run, error):
    def large(args):
        raise error

    monkeypatch.setattr(info, "run", large)
    code, out, err = run("info", "m")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("metaprior: there is not enough memory")
    assert err.endswith("; use fewer rows or a smaller network.\n")


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
def test_a_reader_that_leaves_early_ends_the_program_without_a_word(folder):
    many = pd.concat([FRAME[["x", "colour", "day", "member"]]] * 100)
    words = [sys.executable, "-m", "metaprior", "predict", str(folder / "price.metaprior"), "-"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    process.stdin.write(many.to_csv(index=False))
    process.stdin.close()
    assert process.wait() == 128 + signal.SIGPIPE, process.stderr.read()
    assert process.stderr.read() == ""
    process.stderr.close()


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
    with pytest.raises(UsageError, match="expected NAME.*at least one NAME; got '2 \\* 3'"):
        kernel_in_words("2 * 3", schema)


def test_a_command_that_cannot_be_imported_does_not_stop_the_others(added):
    added(broken="metaprior_nowhere.command")
    with pytest.warns(
        UserWarning, match="the command 'broken' is not available: metaprior_nowhere.command cannot be imported"
    ):
        found = all_commands()
    assert "fit" in found
    assert "broken" not in found
