"""One writer at a time: a lock that never outlives its holder, and a fingerprint that sees every change."""

import errno
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from killed import needs_sigkill
from metaprior.io import locks
from metaprior.io.locks import fingerprint, locked
from metaprior.io.saving import save_state

#: Holds the lock of the file of its argument until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
from metaprior.io.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def target(tmp_path):
    return tmp_path / "file"


# --- locks ------------------------------------------------------------------------------


def test_threads_hold_a_lock_one_after_the_other_and_leave_nothing(target):
    inside, most = [], []

    def work():
        for _ in range(25):
            with locked(target):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 100
    assert list(target.parent.iterdir()) == []


def test_a_lock_that_is_held_is_waited_for_and_then_an_error(target):
    with (
        locked(target),
        pytest.raises(TimeoutError, match=r"another process has been writing .*file for 0.05 seconds.*repeat the call"),
        locked(target, patience=0.05),
    ):
        pass


@needs_sigkill
def test_a_lock_ends_with_the_process_that_holds_it(target):
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(target)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(TimeoutError), locked(target, patience=0):
            pass
        holder.send_signal(signal.SIGKILL)
    assert len(list(target.parent.iterdir())) == 1  # its lock file is still there
    with locked(target, patience=0):
        pass
    assert list(target.parent.iterdir()) == []


def test_all_names_of_a_file_have_one_lock(target, tmp_path):
    (tmp_path / "link").symlink_to(target)
    with locked(target), pytest.raises(TimeoutError), locked(tmp_path / "link", patience=0):
        pass


def test_a_name_may_be_as_long_as_names_are(tmp_path):
    with locked(tmp_path / ("x" * 255)):
        pass


def test_an_error_inside_gives_the_lock_back(target):
    with pytest.raises(KeyError), locked(target):
        raise KeyError
    with locked(target, patience=0):
        pass


def test_a_folder_that_is_not_there_is_named(target):
    with pytest.raises(OSError, match="save: cannot write in the folder .*nowhere"), locked(target / "nowhere" / "x"):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="it has another way to lock")
def test_a_file_system_without_locks_is_written_without_one(target, monkeypatch):
    def none(*args):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(locks.fcntl, "flock", none)
    with locked(target, patience=0), locked(target, patience=0):
        pass


# --- fingerprints ---------------------------------------------------------------------------


def test_a_fingerprint_changes_with_any_number_of_an_array(target):
    def of(*numbers):
        save_state(target, "numbers", {"numbers": np.array(numbers)})
        return fingerprint(target)

    assert len({fingerprint(target), of(1.0, 2.0), of(1.0, 2.0 + 1e-15), of(2.0, 1.0), of(1.0), of(1, 2)}) == 6
    assert fingerprint(target) == fingerprint(target)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_what_is_no_regular_file_is_not_opened(tmp_path, target):
    os.mkfifo(target)
    assert fingerprint(target) == fingerprint(tmp_path) == "not a regular file"
    assert fingerprint(tmp_path / "nowhere") is None


@pytest.mark.parametrize("content", [b"", b"abc", b"\xff" * 8, b"\xff" * 100, b"precious text"])
def test_any_file_has_a_fingerprint(content, target):
    target.write_bytes(content)
    assert len(fingerprint(target)) == 64
