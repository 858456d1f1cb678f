"""Run many independent jobs, one after another or spread by joblib over processes, Dask or Ray.

`n_jobs` is the number of jobs at a time; `joblib.parallel_config(backend="dask")` around the call sends them to a
cluster. Each worker computes with one thread, because two programs that both use all cores slow each other many times
over. All workers share the on-disk compilation cache.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import joblib


def run_jobs(
    function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], n_jobs: int | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (index of the job, function(*job)) as jobs finish. With one worker they finish in order.

    An error in a job is raised here, and no further job is started.
    """
    if joblib.effective_n_jobs(n_jobs) == 1:
        for number, job in enumerate(jobs):
            yield number, function(*job)
        return
    calls = (joblib.delayed(_alone)(function, number, job) for number, job in enumerate(jobs))
    yield from _parallel(n_jobs)(calls)


def _parallel(n_jobs: int | None) -> joblib.Parallel:
    """Return a runner that yields results as they come, if its backend can do that."""
    try:
        return joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:
        return joblib.Parallel(n_jobs=n_jobs, batch_size=1)


def _alone(function: Callable[..., Any], number: int, job: tuple[Any, ...]) -> tuple[int, Any]:
    """Run a job in a worker with one thread. XLA reads the size of its thread pool from NPROC when it starts."""
    os.environ.setdefault("NPROC", "1")
    return number, function(*job)
