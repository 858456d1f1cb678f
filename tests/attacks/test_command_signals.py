"""Ctrl-C and SIGTERM at any moment: one line, the code that a shell expects, and no file changed."""

import os
import signal
import subprocess
import sys
import time

import pytest

from commands import FIT, TABLE, arguments

pytest.importorskip("pandas")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals of Linux")
STOPS = [(signal.SIGINT, 130, "stopped by Ctrl-C."), (signal.SIGTERM, 143, "stopped by SIGTERM.")]


def started(*words, folder, **options):
    return subprocess.Popen(arguments(*words), cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, **options)


@pytest.mark.parametrize(("number", "code", "said"), STOPS)
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_command_that_waits_for_its_table_can_be_stopped(tmp_path, number, code, said, as_json):
    words = ["fit", "-", "--target", "y", "--out", "m", *as_json]
    process = started(*words, folder=tmp_path, stdin=subprocess.PIPE)
    process.stdin.write(b"x,y\n" * 300_000)  # more than a pipe holds: once it is written, the command reads
    process.stdin.flush()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert (err if not as_json else out).decode().count(said) == 1
    assert err == (b"" if as_json else f"metaprior: {said}\n".encode())
    assert os.listdir(tmp_path) == []


#: A command that is busy in compiled code, where no handler of Python can run, for minutes.
BUSY = """
import hashlib, sys
from metaprior.cli import commands, main, stopping
from metaprior.cli.commands import info
def run(args):
    print("busy", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000_000)
stopping.GRACE = float(sys.argv.pop(1))
info.run = run
sys.exit(main())
"""


@pytest.mark.parametrize(("number", "code", "said"), STOPS)
@pytest.mark.parametrize(("grace", "repeated"), [(0.2, False), (600.0, True)])
def test_compiled_code_delays_the_end_for_some_seconds_or_until_a_second_signal(number, code, said, grace, repeated):
    words = [sys.executable, "-c", BUSY, str(grace), "info", "m"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"busy\n"
            process.send_signal(number)
            ends = time.monotonic() + 30
            while process.poll() is None and time.monotonic() < ends:
                time.sleep(0.1)  # two signals at the same moment are one
                if repeated:
                    process.send_signal(number)
        finally:
            process.kill()
        assert (process.returncode, process.stderr.read().decode()) == (code, f"metaprior: {said}\n")


#: A fit that does not end by itself: where all weights are drawn, no rule finds the bound flat.
ENDLESS = (*FIT, "--set", "output_layer=drawn", "--max-iter", "100000000", "--ignore", "id", "--quiet")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code", "said"), STOPS)
@pytest.mark.parametrize("seconds", [0.3, 0.7, 1.1, 1.5, 1.9, 2.5, 3.5, 5.0])
def test_a_fit_can_be_stopped_at_any_moment(tmp_path, number, code, said, seconds):
    """While it imports, compiles or trains: the old model stays as it was, and no other file is left."""
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "m.metaprior").write_bytes(b"the old model")
    process = started(*ENDLESS, "--force", folder=tmp_path)
    time.sleep(seconds)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.decode()) == (code, b"", f"metaprior: {said}\n")
    assert (tmp_path / "m.metaprior").read_bytes() == b"the old model"
    assert sorted(os.listdir(tmp_path)) == ["m.metaprior", "t.csv"]


@pytest.mark.slow
def test_many_signals_end_a_fit_without_a_traceback(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    process = started(*ENDLESS, folder=tmp_path)
    time.sleep(2.5)
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        time.sleep(0.005)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)
    assert err in (b"", b"metaprior: stopped by Ctrl-C.\n")
    assert os.listdir(tmp_path) == ["t.csv"]
