"""What a second process, a kill or an odd target can do to a file that is written: nothing."""

import errno
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import metaprior
from metaprior.cli import main
from metaprior.io import atomic
from metaprior.io.atomic import write_atomically
from metaprior.io.saving import save_state

EARLIER = Path(__file__).parents[1] / "files" / "earlier"
#: Rows for the models there.
AT = [[0.5, -0.5]]
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it")


@pytest.fixture(scope="module")
def model():
    return metaprior.load(EARLIER / "map.metaprior")


def left_in(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# --- what is not a regular file ---------------------------------------------------------

#: Ways to write a file that may replace what is there.
WRITERS = {
    "model": lambda model, path: model.save(path, overwrite=True),
    "loop": lambda model, path: save_state(path, "mine", {"a": 1}),
    "table": lambda model, path: _table().write_table(_frame(), path, overwrite=True),
    "bytes": lambda model, path: write_atomically(path, b"content"),
}


def _table():
    return pytest.importorskip("metaprior.tables")


def _frame():
    return pytest.importorskip("pandas").DataFrame({"x": [1.0, 2.0]})


def _device(path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root may make a device")


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the path of a socket is at most 107 bytes long
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


SPECIAL = {"pipe": os.mkfifo, "device": _device, "socket": _socket, "folder": os.mkdir}


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_not_a_regular_file_is_never_replaced(model, tmp_path, kind, writer, linked):
    """32 cases: four ways to write, four kinds of target, by its name or through a symbolic link."""
    target = tmp_path / "target"
    SPECIAL[kind](target)
    before, path = os.stat(target), target
    if linked:
        path = tmp_path / "link"
        path.symlink_to(target)
    expected = left_in(tmp_path)
    with pytest.raises(OSError, match="save: expected a file or a new name; .* is not replaced"):
        WRITERS[writer](model, path)
    assert os.path.samestat(before, os.stat(target))
    assert left_in(tmp_path) == expected


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_the_command_line_does_not_replace_it_by_force(tmp_path, capsys, kind):
    target, table = tmp_path / "target", tmp_path / "table.csv"
    SPECIAL[kind](target)
    _frame().assign(y=[0.0, 1.0]).to_csv(table, index=False)
    before = os.stat(target)
    code = main(["fit", str(table), "--target", "y", "--out", str(target), "--force"])
    assert (code, "give the name of a file" in capsys.readouterr().err) == (1, True)
    assert os.path.samestat(before, os.stat(target))


# --- links, permissions and long names --------------------------------------------------


@pytest.mark.parametrize("exists", [True, False])
def test_a_symbolic_link_stays_and_the_file_that_it_names_is_written(model, tmp_path, exists):
    folder, link = tmp_path / "elsewhere", tmp_path / "link"
    folder.mkdir()
    if exists:
        (folder / "model").write_text("old")
    link.symlink_to(folder / "model")
    model.save(link, overwrite=exists)
    assert link.is_symlink()
    assert not (folder / "model").is_symlink()
    assert np.array_equal(metaprior.load(folder / "model").predict(AT), model.predict(AT))
    assert (left_in(folder), left_in(tmp_path)) == (["model"], ["elsewhere", "link"])


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_a_replaced_file_keeps_its_permissions(model, tmp_path, mode):
    path = tmp_path / "model"
    path.touch()
    path.chmod(mode)
    model.save(path, overwrite=True)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o027])
def test_a_new_file_has_the_permissions_of_any_new_file(model, tmp_path, mask):
    before = os.umask(mask)
    try:
        model.save(tmp_path / "model")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("length", [200, 250, 255])
def test_a_name_as_long_as_the_system_allows_is_saved(model, tmp_path, length):
    path = tmp_path / ("m" * length)
    model.save(path)
    assert left_in(tmp_path) == [path.name]
    metaprior.load(path)


# --- several writers at once ------------------------------------------------------------

ROUNDS, WRITING = 25, 4


@pytest.mark.parametrize("has_links", [True, False])
def test_of_several_threads_that_may_not_overwrite_exactly_one_wins(model, tmp_path, monkeypatch, has_links):
    """Fifty races of four threads, on file systems with hard links and without."""

    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr(os, "link", refuse)
    for number in range(ROUNDS):
        path, won, barrier = tmp_path / f"race-{number}", list[int](), threading.Barrier(WRITING)

        def write(who: int, path: Path = path, won: list = won, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            try:
                model.save(path)
            except FileExistsError as error:
                assert "exists; give another name" in str(error)  # noqa: PT017
            else:
                won.append(who)

        threads = [threading.Thread(target=write, args=(who,)) for who in range(WRITING)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        metaprior.load(path)
    assert left_in(tmp_path) == sorted(f"race-{number}" for number in range(ROUNDS))


# --- kills --------------------------------------------------------------------------------

#: Save again and again, and say so once. The content is one letter, 4 MB of it, so that a mixture would be seen.
SAVING = """
import sys
from pathlib import Path
from metaprior.io.atomic import write_atomically
number = 0
while True:
    write_atomically(Path(sys.argv[1]), bytes([65 + number % 26]) * 4_000_000)
    number += 1
    if number == 1:
        print("saved", flush=True)
"""
KILLS = 12


def started(program: str, *arguments: object) -> subprocess.Popen:
    """Start a program, and wait until it has said a word."""
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def killed(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()


def test_a_kill_leaves_the_old_or_the_new_file_whole_and_the_next_save_clears_up(tmp_path):
    """Twelve kills at varied moments."""
    path, left = tmp_path / "file", 0
    for number in range(KILLS):
        process = started(SAVING, path)
        time.sleep(0.003 * number)
        killed(process)
        content = path.read_bytes()
        assert len(content) == 4_000_000
        assert content == content[:1] * len(content)
        left += len(left_in(tmp_path)) - 1
        write_atomically(path, b"next")
        assert left_in(tmp_path) == ["file"]
    assert left > 0, "no kill came while a temporary file was there: the test shows nothing"


SAVING_MODELS = """
import sys, metaprior
one, two = (metaprior.load(path) for path in sys.argv[2:])
while True:
    one.save(sys.argv[1], overwrite=True)
    two.save(sys.argv[1], overwrite=True)
    print("saved", flush=True)
"""


@pytest.mark.slow
def test_a_killed_save_of_a_model_leaves_a_model_that_loads(tmp_path):
    """Eight kills of a process that saves two models in turn."""
    sources = [EARLIER / f"{name}.metaprior" for name in ("map", "hmc")]
    expected = [metaprior.load(source).predict(AT) for source in sources]
    for number in range(8):
        process = started(SAVING_MODELS, tmp_path / "model", *sources)
        time.sleep(0.0023 * number)
        killed(process)
        found = metaprior.load(tmp_path / "model").predict(AT)
        assert any(np.array_equal(found, one) for one in expected)
        metaprior.load(sources[0]).save(tmp_path / "model", overwrite=True)
        assert left_in(tmp_path) == ["model"]


# --- temporary files of others --------------------------------------------------------------

#: Begin to save, say that the temporary file is there, and wait to be told to go on.
WAITING = """
import sys
from pathlib import Path
from metaprior.io.atomic import write_atomically
def parts():
    yield b"first "
    print("begun", flush=True)
    sys.stdin.readline()
    yield b"last"
write_atomically(Path(sys.argv[1]), parts())
"""


def test_the_temporary_file_of_a_living_process_is_left_alone(tmp_path):
    command = [sys.executable, "-c", WAITING, str(tmp_path / "slow")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    for number in range(3):
        write_atomically(tmp_path / f"other-{number}", b"x")
    assert len(left_in(tmp_path)) == 4
    process.communicate("\n", timeout=30)
    assert (tmp_path / "slow").read_bytes() == b"first last"


@pytest.mark.parametrize(
    "name", [".metaprior-old.tmp", ".model.metaprior.x1y2z3", "metaprior-0123456789abcdef.tmp", ".hidden", "notes.tmp"]
)
def test_the_files_of_other_programs_are_left_alone(tmp_path, name):
    (tmp_path / name).write_text("precious")
    write_atomically(tmp_path / "model", b"x")
    assert (tmp_path / name).read_text() == "precious"


def test_only_regular_files_are_taken_for_temporary_ones(tmp_path):
    name = ".metaprior-0123456789abcdef.tmp"
    assert atomic.TEMPORARY.fullmatch(name)
    os.mkfifo(tmp_path / name)
    (tmp_path / name.replace("0", "f")).symlink_to(tmp_path / "model")
    write_atomically(tmp_path / "model", b"x")
    write_atomically(tmp_path / "model", b"y")
    assert len(left_in(tmp_path)) == 3
    assert (tmp_path / "model").read_bytes() == b"y"


# --- memory ---------------------------------------------------------------------------------

SAVING_MUCH = """
import json, sys
import numpy as np
from loading_process import peak
from metaprior.io.saving import save_state
state = {"a": np.ones(12_500_000), "b": np.ones((5000, 2500))}
save_state(sys.argv[1], "small", {"a": np.ones(3)})
before = peak()
save_state(sys.argv[1], "large", state)
print(json.dumps(peak() - before))
"""


@needs_proc
def test_saving_takes_no_second_copy_of_the_arrays(tmp_path):
    """200 MB of arrays are saved with less than 20 MB more."""
    command = [sys.executable, "-c", SAVING_MUCH, tmp_path / "state"]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", ""), str(Path(__file__).parent)])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=here)
    assert json.loads(done.stdout) < 20_000_000
