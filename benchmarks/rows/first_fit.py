"""The first fit of a process with an empty compilation cache: how many seconds of it are tracing and compiling.

The model is the demo's. The times of `metaprior fit` of a table of 300 rows on the command line stand beside it.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import Row
from benchmarks.tables import friedman

PROGRAM = """
import numpy as np
from jax import monitoring
spent = []
monitoring.register_event_duration_secs_listener(
    lambda name, seconds, **_: spent.append(seconds) if name.startswith("/jax/core/compile") else None
)
from metaprior import MetaGPRegressor, kernels
x = np.random.default_rng(0).uniform(-2, 2, (100, 1))
MetaGPRegressor(input_kernel=kernels.Periodic(), random_state=0).fit(x, np.sin(2 * np.pi * 0.6 * x[:, 0]))
print(sum(spent))
"""


def _compiling(cache: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"METAPRIOR_CACHE": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def _command(table: Path, cache: str) -> float:
    """Return the seconds of `metaprior fit`."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "metaprior", "fit", str(table), "--target", "y", "--force"]
    subprocess.run(
        [*command, "--out", str(table.with_suffix(".metaprior"))],
        env=os.environ | {"METAPRIOR_CACHE": cache},
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - begun


def measure() -> Row:
    """Return the median over three processes, each with a cache of its own."""
    seconds, cold, warm = [], [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            seconds.append(_compiling(cache))
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "table.csv"
            x, y = friedman(300, 0)
            names = ",".join([*[f"x{k}" for k in range(8)], "y"])
            np.savetxt(table, np.column_stack([x, y]), delimiter=",", header=names, comments="")
            cold.append(_command(table, f"{folder}/cache"))
            warm.append(_command(table, f"{folder}/cache"))
    return Row(
        "first fit, the demo's model, cold cache: seconds of tracing and compiling",
        float(np.median(seconds)),
        "<= 3",
        {
            "`metaprior fit` of 300 rows, cold cache (seconds)": float(np.median(cold)),
            "`metaprior fit` of 300 rows, warm cache (seconds)": float(np.median(warm)),
        },
    )
