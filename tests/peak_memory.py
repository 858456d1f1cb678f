"""How long a program takes and how much memory it needs at most, measured in a process of its own."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

#: Printed at the end. VmHWM is the peak of this program alone; ru_maxrss counts the program that started it too.
REPORT = """
import sys
for line in open("/proc/self/status"):
    if line.startswith("VmHWM"):
        print("\\npeak", int(line.split()[1]) / 1024)
"""

needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to see the peak of memory")


class Measured(NamedTuple):
    """What a program printed, its seconds, and its peak of memory in MB."""

    said: str
    seconds: float
    megabytes: float


def measured(code: str, *arguments: object, timeout: float = 60, **environment: str) -> Measured:
    """Run a program to its end; an error of its own is printed as its type and its message."""
    body = "\n".join(f"    {line}" for line in code.strip().splitlines())
    program = f"import sys\ntry:\n{body}\nexcept Exception as error:\n    print(type(error).__name__, error)\n{REPORT}"
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said, _, peak = done.stdout.rpartition("\npeak ")
    return Measured(said.strip(), time.perf_counter() - started, float(peak))
