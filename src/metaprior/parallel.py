"""Sweeps: many independent jobs, one after another or spread by joblib over processes, Dask or Ray.

`n_jobs` says how many at once; `joblib.parallel_config(backend="dask")` around the call sends them to a cluster.
Workers compute with one thread each, for two programs that both use all cores slow each other many times over, and
share the on-disk compilation cache.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import joblib


def run_jobs(
    function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], n_jobs: int | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield (number of the job, function(*job)) as jobs end; in order where there is one worker.

    An error in a job is raised here, and no further job is begun.
    """
    if joblib.effective_n_jobs(n_jobs) == 1:
        for number, job in enumerate(jobs):
            yield number, function(*job)
        return
    calls = (joblib.delayed(_alone)(function, number, job) for number, job in enumerate(jobs))
    yield from _parallel(n_jobs)(calls)


def _parallel(n_jobs: int | None) -> joblib.Parallel:
    """Return a runner that hands results out as they come, where its backend can."""
    try:
        return joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:
        return joblib.Parallel(n_jobs=n_jobs, batch_size=1)


def _alone(function: Callable[..., Any], number: int, job: tuple[Any, ...]) -> tuple[int, Any]:
    """Run a job in a worker, with one thread: NPROC is what XLA sizes its pool by when it starts."""
    os.environ.setdefault("NPROC", "1")
    return number, function(*job)
