"""How programs are measured: they take turns, each turn is timed, and the medians are compared.

On a shared machine the speed changes from second to second. Two programs that alternate see the same changes, so their
ratio is reliable even if their times are not.
"""

import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One figure: what was measured, the ratio, its target (`bar`), and the numbers behind it."""

    work: str
    ratio: float
    bar: str
    details: dict[str, Any] = {}

    @property
    def holds(self) -> bool:
        """Whether the ratio meets its target, "<= number" or ">= number"."""
        sense, value = self.bar.split()[:2]
        return self.ratio <= float(value) if sense == "<=" else self.ratio >= float(value)

    def as_json(self) -> dict[str, Any]:
        """Return the row in the form of results.json."""
        return {"work": self.work, "ratio": self.ratio, "bar": self.bar, "holds": self.holds, **self.details}


def seconds(call: Callable[[], Any]) -> float:
    """Return the time of one call. The call must wait for its result."""
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def alternating(programs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median time of every program over `repeats` turns, after one run each to compile."""
    for call in programs.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(repeats):
        for name, call in programs.items():
            times[name].append(seconds(call))
    return {name: statistics.median(values) for name, values in times.items()}


def peak_memory() -> int:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def matmul_rate(size: int = 1024, repeats: int = 9) -> float:
    """Return the machine's rate in GFlop/s for a product of two large float32 matrices."""
    import jax
    import jax.numpy as jnp

    matrix = jnp.ones((size, size), jnp.float32)
    product = jax.jit(lambda m: m @ m)
    median = alternating({"product": lambda: product(matrix).block_until_ready()}, repeats)["product"]
    return 2 * size**3 / median / 1e9


def machine() -> dict[str, Any]:
    """Return a description of the machine and the software."""
    from importlib.metadata import version

    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "jax": version("jax"),
        "metaprior": version("metaprior"),
        "matmul_gflops": round(matmul_rate(), 1),
        "date": time.strftime("%Y-%m-%d"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
