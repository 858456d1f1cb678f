"""From the start of a process to a prediction: the demo's model with a warm compilation cache.

This is the one figure that is not a ratio: its target is in seconds. The times of a fit of one step are given too.
"""

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from benchmarks.measure import Row

PROGRAM = """
import time
begun = time.perf_counter()
import numpy as np
from metaprior import MetaGPRegressor, kernels
x = np.random.default_rng(0).uniform(-2, 2, (100, 1))
y = np.sin(2 * np.pi * 0.6 * x[:, 0])
model = MetaGPRegressor(input_kernel=kernels.Periodic(), random_state=0, max_iter={steps}).fit(x, y)
fitted = time.perf_counter()
if {steps} > 1:
    model.predict(x, return_std=True)
print(fitted - begun)
"""


def _run(steps: int, cache: str) -> tuple[float, float]:
    """Return the seconds of the whole process, and those from its first line to the end of its fit."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(steps=steps)],
        env=os.environ | {"METAPRIOR_CACHE": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    return time.perf_counter() - begun, float(done.stdout)


def measure() -> Row:
    """Return the seconds from start to prediction, the median of three processes."""
    with tempfile.TemporaryDirectory() as cache:
        cold = _run(1, cache)[1]
        warm = float(np.median([_run(1, cache)[1] for _ in range(3)]))
        _run(3000, cache)
        whole = float(np.median([_run(3000, cache)[0] for _ in range(3)]))
    return Row(
        "process start to prediction, the demo's model, warm cache (seconds)",
        whole,
        "<= 7",
        {"first fit of one step, imports and compiling, cold (seconds)": cold, "the same, cached (seconds)": warm},
    )
