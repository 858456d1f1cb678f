"""What the processes of the attacks on loops do. Run as a program, it makes a process for every job that it is sent."""

import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

import pytest

from attacks.loop_kinds import KINDS
from metaprior.decisions import ChangedFileError

#: What Python calls its operations on files when it tells of them: a process can be killed before any of them.
FILE_OPERATIONS = ("open", "os.rename", "os.link", "os.remove", "os.chmod", "os.truncate", "fcntl.flock", "fcntl.lockf")
#: Answers after which nothing more is told.
FULL = 300
#: The exit code of a process that has not made a loop, because there was one.
REFUSED = 3


def play(kind, path, log):
    """Ask and tell 0, 1, 2, ..., write down every answer once `tell` has returned, and wait at the end."""
    loops = KINDS[kind]
    loop = loops.load(path) if Path(path).exists() else loops.make(path)
    with open(log, "a", buffering=1) as told:
        while loop.n_observed < FULL:
            loops.ask(loop)
            value = float(loop.n_observed)
            loops.tell(loop, value)
            told.write(f"{value}\n")
    signal.pause()


def die(kind, path, call, operation):
    """Make a call, and be killed before the given operation on a file of the loop's folder, or on an open file."""
    loops, heard = KINDS[kind], []
    loop = loops.load(path)

    def hear(event, arguments):
        here = isinstance(arguments[0], int) or str(arguments[0]).startswith(str(Path(path).parent))
        if event in FILE_OPERATIONS and here:
            heard.append(event)
            if len(heard) == operation:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hear)
    if call == "ask":
        loops.ask(loop)
    else:
        loops.tell(loop, float(loop.n_observed))


def fill(kind, path):
    """Make every call twice: with no room for the file, which must fail and change nothing, and then with room."""
    loops, whole = KINDS[kind], KINDS[kind].make(None)
    loop = loops.make(path)
    for number in range(6):
        for call in (lambda it: loops.ask(it), lambda it: loops.tell(it, float(number))):  # noqa: B023
            before = str(loop.history), str(loop.pending), Path(path).read_bytes()
            with pytest.raises(OSError, match="File too large"), _no_room():
                call(loop)
            assert (str(loop.history), str(loop.pending), Path(path).read_bytes()) == before
            assert [file.name for file in Path(path).parent.iterdir()] == [Path(path).name]
            call(loop)
            call(whole)
    assert loops.stored(loop) == loops.stored(loops.load(path)) == [float(number) for number in range(6)]
    assert loops.ask(loop) == loops.ask(whole)


class _no_room:
    """No file can grow beyond 100 bytes, as on a full disk."""

    def __enter__(self):
        self.usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, self.usual[1]))

    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.usual)


def compete(kind, path, start, count):
    """Tell `count` answers to a loop that others tell theirs; load it again whenever it has changed."""
    loops = KINDS[kind]
    loop, value = loops.load(path), start
    while value < start + count:
        try:
            loops.tell_unasked(loop, float(value))
            value += 1
        except (ChangedFileError, BlockingIOError):
            loop = loops.load(path)


def create(kind, path, seed, when):
    """Make a loop at a given time; exit with `REFUSED` if there is one."""
    time.sleep(max(0.0, when - time.time()))
    try:
        KINDS[kind].make(path, seed)
    except FileExistsError:
        os._exit(REFUSED)


def _begin(name, args):
    """Return the number of a new process that does a job."""
    child = os.fork()
    if not child:
        try:
            globals()[name](*args)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    return child


def _end(jobs):
    """Kill every process when its time has come, and return how each of them ended; minus the signal if killed."""
    begun, ended = time.monotonic(), {}
    running = {_begin(name, args): seconds for name, args, seconds in jobs}
    order = list(running)
    while running:
        for child, seconds in list(running.items()):
            if time.monotonic() - begun > seconds:
                os.kill(child, signal.SIGKILL)
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                ended[child] = os.waitstatus_to_exitcode(status)
                del running[child]
        time.sleep(0.001)
    return [ended[child] for child in order]


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(_end(json.loads(line))), flush=True)
