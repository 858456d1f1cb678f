"""What a stranger's file can do: be refused in words, or predict. It takes little memory, and crashes nothing."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import metaprior
from edited_files import put_together, taken_apart
from metaprior.io.saving import load_state, origin, save_state
from metaprior.tables.columns import Number
from metaprior.tables.model import TableModel
from metaprior.tables.schema import Schema
from metaprior.tables.target import Target

HERE = Path(__file__).parent
FILES = HERE.parent / "files"
EARLIER = FILES / "earlier"
#: Kinds of models whose programs compile quickly, and the others.
QUICK = ["map", "mfvi", "gp", "laplace"]
OTHERS = ["cls", "dkl", "drawn", "ens", "fitc", "hmc", "inducing", "local", "metann", "mt"]
LOOPS = ["loop-active", "loop-bandit", "loop-optimise"]
MB = 1_000_000
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")


def run(script: str, *arguments: object, timeout: float = 600) -> dict:
    """Run a script beside this one in a process of its own, and return what it prints. It must end well."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(HERE.parent)])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout)


# --- mutated files ------------------------------------------------------------------------


def assert_all_held(folder: Path, first: int, count: int, sources: list[Path]) -> None:
    """Each is refused or predicts; of those that load, few may say that their prediction would not be finite."""
    found = run("mutated_files.py", folder, first, count, *sources)
    assert found["others"] == []
    assert found["refused"] + found["predicted"] + found["not finite"] == count * len(sources)
    assert found["refused"] > 0.4 * count * len(sources)
    assert found["predicted"] > 0.1 * count * len(sources)
    assert found["not finite"] <= 0.02 * count * len(sources)


def test_750_mutated_models_are_refused_or_predict(tmp_path):
    """150 files of four kinds of models, and of a model of a table."""
    pytest.importorskip("pandas")
    table_model().save(tmp_path / "table.metaprior")
    sources = [*[EARLIER / f"{name}.metaprior" for name in QUICK], tmp_path / "table.metaprior"]
    assert_all_held(tmp_path, 0, 150, sources)


def test_300_mutated_loops_are_refused_or_load(tmp_path):
    assert_all_held(tmp_path, 0, 100, [FILES / f"{name}.metaprior" for name in LOOPS])


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK + OTHERS)
def test_200_other_mutations_of_every_kind_are_refused_or_predict(tmp_path, name):
    """2,800 files."""
    assert_all_held(tmp_path, 10_000, 200, [EARLIER / f"{name}.metaprior"])


def table_model() -> TableModel:
    """Return a model of a table of two columns."""
    columns = (Number("a", -2.0, 2.0, None), Number("b", -2.0, 2.0, 0.5))
    schema = Schema(columns, Target("y", "regression", "number"), ())
    return TableModel(metaprior.load(EARLIER / "map.metaprior"), schema, {"rows": 20})


# --- random states ------------------------------------------------------------------------


def with_random_state(path: Path, state: list, key: np.ndarray) -> Path:
    """Write a model with a random state of this content."""
    texts, arrays = taken_apart(EARLIER / "map.metaprior")
    content = json.loads(texts["content"])
    content["estimator"]["params"]["random_state"] = {"random_state": {"list": state}}
    put_together(path, texts, content, {**arrays, "key": key})
    return path


KEY = np.random.RandomState(3).get_state()[1]
ZERO = {"float": "0x0.0p+0"}
STATE = ["MT19937", {"array": "key"}, 624, 0, ZERO]


def test_a_random_state_of_an_earlier_file_goes_on_where_it_was(tmp_path):
    model = metaprior.load(with_random_state(tmp_path / "model", STATE, KEY))
    assert model.random_state.randint(2**31) == np.random.RandomState(3).randint(2**31)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, "PCG64"),
        (2, 200_000_000),
        (2, 625),
        (2, -1),
        (2, None),
        (2, {"float": "0x1p1"}),
        (3, 2),
        (3, "x"),
        (4, {"float": "nan"}),
        (4, {"float": "inf"}),
        (4, 0),
        (1, [1, 2]),
    ],
)
def test_a_random_state_that_no_generator_can_have_is_refused(tmp_path, place, value):
    state = [*STATE]
    state[place] = value
    with pytest.raises(ValueError, match="load: .*cannot be read"):
        metaprior.load(with_random_state(tmp_path / "model", state, KEY))


@pytest.mark.parametrize(
    "key", [KEY[:-1], KEY[None], KEY.astype(np.uint64), KEY.astype(np.float64), np.zeros(624, np.uint32), KEY[:0]]
)
def test_a_key_that_no_generator_can_have_is_refused(tmp_path, key):
    """A key of zeros makes the generator draw zeros, and its normals hang."""
    with pytest.raises(ValueError, match="a random state is not one of NumPy's generator"):
        metaprior.load(with_random_state(tmp_path / "model", STATE, key))


# --- memory and time ------------------------------------------------------------------------


def edited(path: Path, **state: object) -> Path:
    """Write a model with more in its state."""
    texts, arrays = taken_apart(EARLIER / "map.metaprior")
    content = json.loads(texts["content"])
    content["estimator"]["state"] |= state
    put_together(path, texts, content, arrays)
    return path


def with_text(path: Path, more: str) -> Path:
    """Write a model with a JSON text in its state."""
    texts, arrays = taken_apart(EARLIER / "map.metaprior")
    put_together(path, texts, texts["content"].replace('"state": {', f'"state": {{"evil": {more}, ', 1), arrays)
    return path


def sparse(path: Path, header: dict, size: int = 6 * 2**30) -> Path:
    """Write a file with a header and nothing but a hole behind it."""
    encoded = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        file.truncate(8 + len(encoded) + size)
    return path


def hole(dtype: str = "U8", count: int = 6 * 2**30) -> dict:
    return {"dtype": dtype, "shape": [count], "data_offsets": [0, 6 * 2**30]}


#: Files that took gigabytes, or could.
LARGE = {
    "wide texts": lambda p: edited(p, classes_={"texts": ["a", "b"], "dtype": "<U200000000"}),
    "one long text": lambda p: edited(p, names_={"texts": ["x" * 2 * MB] + [""] * 20_000, "dtype": "<U1"}),
    "long range": lambda p: edited(p, evil_={"list": [{"range": [0, 10**12, 1]}]}),
    "unknown format": lambda p: sparse(p, {"__metadata__": {"format": "metaprior 99", "content": ""}, "a": hole()}),
    "no format": lambda p: sparse(p, {"a": hole()}),
    "wrong size": lambda p: sparse(p, {"__metadata__": {"format": "metaprior 2", "content": "{}"}, "a": hole("F64")}),
    "long header": lambda p: (
        sparse(p, {"__metadata__": {"format": "metaprior 99"}, "a": hole()}, 0)
        and p.write_bytes((2**40).to_bytes(8, "little") + b"{" * 1000)
    ),
    "nested lists": lambda p: with_text(p, '{"list": [' * 60 + ",".join(['{"list": []}'] * 3 * MB) + "]}" * 60),
    "nested JSON": lambda p: with_text(p, "[" * 30 * MB + "]" * 30 * MB),
    "many objects": lambda p: with_text(p, '{"list": [' + ",".join(['{"dict": {"a": 1}}'] * MB) + "]}"),
    "many texts": lambda p: with_text(p, '{"list": [' + ",".join(['"ab"'] * 5 * MB) + "]}"),
    "many numbers": lambda p: with_text(p, '{"list": [' + ",".join(["300"] * 6 * MB) + "]}"),
    "wide letters": lambda p: with_text(p, '"' + "a" * 50 * MB + '\\ud83d\\ude00"'),
    "many names": lambda p: with_text(p, '{"dict": {' + ",".join(f'"{k}": 1' for k in range(2 * MB)) + "}}"),
    "many arrays": lambda p: sparse(
        p,
        {"__metadata__": {"format": "metaprior 2", "content": "{}"}}
        | {f"a{k}": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]} for k in range(500_000)},
        0,
    ),
}
#: Those whose files are small.
SMALL = ["wide texts", "one long text", "long range", "unknown format", "no format", "wrong size", "long header"]


def assert_takes_little(folder: Path, names: list[str]) -> None:
    """Holes of sparse files do not count: nothing of them is read."""
    paths = [folder / str(number) for number in range(len(names))]
    for name, path in zip(names, paths, strict=True):
        LARGE[name](path)
    found = run("loading_process.py", "model", *paths)
    assert all(one.startswith("ValueError: load: ") for one in found["found"]), found
    size = sum(512 * path.stat().st_blocks for path in paths)
    assert found["memory"] <= 4 * size + 50 * MB
    assert found["seconds"] < 5 + size / MB


@needs_proc
def test_small_files_that_took_gigabytes_take_four_times_their_size_and_fifty_megabytes(tmp_path):
    """Seven files, all in one process."""
    assert_takes_little(tmp_path, SMALL)


@needs_proc
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in LARGE if name not in SMALL])
def test_a_file_takes_at_most_four_times_its_size_and_fifty_megabytes(tmp_path, name):
    assert_takes_little(tmp_path, [name])


@needs_proc
@pytest.mark.slow
def test_a_large_model_that_loads_takes_little_more_than_its_size(tmp_path):
    texts, arrays = taken_apart(EARLIER / "map.metaprior")
    content = json.loads(texts["content"])
    content["estimator"]["state"]["elbo_history_"] = {"array": "large"}
    put_together(tmp_path / "model", texts, content, {**arrays, "large": np.ones(25 * MB)})
    found = run("loading_process.py", "model", tmp_path / "model")
    assert found["found"] == ["loaded"]
    assert found["memory"] <= 250 * MB


@needs_proc
@pytest.mark.slow
def test_a_loop_with_many_observations_takes_a_small_multiple_of_its_size(tmp_path):
    """The description of a file may be most of it: a hundred thousand records."""
    records = [{"n_rows": 300 + number, "fresh": True, "seconds": 0.5 * number} for number in range(100_000)]
    save_state(tmp_path / "loop", "mine", {"records": records})
    found = run("loading_process.py", "mine", tmp_path / "loop")
    assert found["found"] == ["loaded"]
    assert found["memory"] <= 4 * (tmp_path / "loop").stat().st_size + 50 * MB
    assert load_state(tmp_path / "loop", "mine")["records"] == records


# --- what is not a file, and files that change ----------------------------------------------


@pytest.mark.parametrize("read", [metaprior.load, origin, lambda path: load_state(path, "active")])
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path, read):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", tmp_path):
        with pytest.raises(OSError, match="load: expected a regular file"):
            read(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read(tmp_path / "nothing")


def test_a_file_that_shrinks_while_it_is_read_is_an_error_and_no_crash(tmp_path):
    """100 loads of a file that is cut off and written again all the time."""
    path, content, stop = tmp_path / "model", (EARLIER / "hmc.metaprior").read_bytes(), threading.Event()

    def change() -> None:
        with path.open("r+b") as file:
            while not stop.is_set():
                file.truncate(3000)
                file.seek(3000)
                file.write(content[3000:])
                file.flush()

    path.write_bytes(content)
    changing = threading.Thread(target=change)
    changing.start()
    try:
        code = (
            "import sys, metaprior\nfor _ in range(100):\n try: metaprior.load(sys.argv[1])\n except ValueError: pass"
        )
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, path], capture_output=True, text=True)
    finally:
        stop.set()
        changing.join()
    assert done.returncode == 0, done.stderr[-1000:]


# --- what may be a part of a model ----------------------------------------------------------


@pytest.mark.parametrize("name", ["predict", "fit", "_method", "max_iter", "set_params", "a b", ""])
def test_a_file_cannot_hide_a_method_or_a_parameter(tmp_path, name):
    with pytest.raises(ValueError, match="cannot have fitted attributes"):
        metaprior.load(edited(tmp_path / "model", **{name: 1}))


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"dict": {"a": 1, "a": 2}}'])
def test_a_name_that_is_given_twice_is_refused(tmp_path, text):
    with pytest.raises(ValueError, match=r"given twice|unexpected kind"):
        metaprior.load(with_text(tmp_path / "model", text))


def test_a_file_without_a_fit_is_refused(tmp_path):
    texts, arrays = taken_apart(EARLIER / "map.metaprior")
    content = json.loads(texts["content"])
    content["estimator"]["state"] = {}
    put_together(tmp_path / "model", texts, content, arrays)
    with pytest.raises(ValueError, match="n_features_in_"):
        metaprior.load(tmp_path / "model")


def test_a_model_that_would_draw_more_than_any_memory_holds_is_refused(tmp_path):
    texts, arrays = taken_apart(EARLIER / "mfvi.metaprior")
    content = json.loads(texts["content"])
    content["estimator"]["params"]["num_predict_draws"] = 10**9
    put_together(tmp_path / "model", texts, content, arrays)
    with pytest.raises(ValueError, match="a prediction would take .* normals"):
        metaprior.load(tmp_path / "model")
