"""A process that is killed between two calls of its loop: what the tests of several loops need."""

import os
import signal
import subprocess
import sys

import pytest

#: Windows has no such signal.
needs_sigkill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="ends a process by SIGKILL")

#: Put before a program's own code: `done(text)` says that a call is done, and waits to be told to go on.
SAY = """
import sys
def done(text):
    print(text, flush=True)
    sys.stdin.readline()
"""


def calls_until_killed(code: str, path: object, num_calls: int) -> list[str]:
    """Let a program make so many calls, kill it with SIGKILL, and return what it said of them.

    The program gets the path of its file as its first argument.
    """
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SAY + code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    said: list[str] = []
    for number in range(num_calls):
        said.append(process.stdout.readline().strip())
        if number < num_calls - 1:
            process.stdin.write("\n")
            process.stdin.flush()
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdin.close()
    process.stdout.close()
    return said
