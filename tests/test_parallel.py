"""Parallel jobs: the same results one by one, over processes, and on a local Dask cluster."""

import os

import joblib
import numpy as np
import pytest

from metaprior import baselines, compare
from metaprior.parallel import run_jobs


def described(number: int, factor: int) -> tuple[int, int, str | None]:
    return number * factor, os.getpid(), os.environ.get("NPROC")


JOBS = [(number, 3) for number in range(6)]
EXPECTED = {number: 3 * number for number in range(6)}


def test_one_worker_runs_jobs_in_order_and_in_this_process():
    results = list(run_jobs(described, JOBS))
    assert [number for number, _ in results] == list(range(6))
    assert {number: value for number, (value, _, _) in results} == EXPECTED
    assert {pid for _, (_, pid, _) in results} == {os.getpid()}


def test_several_workers_are_other_processes_with_one_thread_each(monkeypatch):
    monkeypatch.delenv("NPROC", raising=False)
    results = dict(run_jobs(described, JOBS, n_jobs=2))
    assert {number: value for number, (value, _, _) in results.items()} == EXPECTED
    assert os.getpid() not in {pid for _, pid, _ in results.values()}
    assert {threads for _, _, threads in results.values()} == {"1"}


def failing(number: int) -> int:
    if number == 1:
        raise ArithmeticError("job 1 is wrong")
    return number


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_error_in_a_job_is_raised(n_jobs):
    with pytest.raises(ArithmeticError, match="job 1 is wrong"):
        list(run_jobs(failing, [(0,), (1,), (2,)], n_jobs))


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="the local Dask cluster needs distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        yield cluster


def test_a_dask_cluster_serves_with_one_setting(cluster):
    with joblib.parallel_config(backend="dask"):
        results = dict(run_jobs(described, JOBS))
    assert {number: value for number, (value, _, _) in results.items()} == EXPECTED
    assert os.getpid() not in {pid for _, pid, _ in results.values()}


@pytest.mark.slow
def test_ray_serves_with_one_setting():
    ray = pytest.importorskip("ray", reason="the local Ray cluster needs ray")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    register_ray()
    try:
        with joblib.parallel_config(backend="ray"):
            results = dict(run_jobs(described, JOBS, n_jobs=2))
    finally:
        ray.shutdown()
    assert {number: value for number, (value, _, _) in results.items()} == EXPECTED


@pytest.mark.slow
def test_a_comparison_on_a_cluster_is_the_comparison_here(cluster):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (30, 1))
    y = np.sin(X[:, 0])
    estimators = [baselines.ExactGPRegressor(n_restarts=0), baselines.MAPRegressor((4,), max_iter=20, random_state=0)]
    here = compare(estimators, X, y, cv=2, verbose=False)
    with joblib.parallel_config(backend="dask"):
        there = compare(estimators, X, y, cv=2, verbose=False)
    scores = [name for name in here.columns.levels[0] if "seconds" not in name]
    for name in scores:
        np.testing.assert_allclose(there[name].loc[here.index], here[name], rtol=1e-4, err_msg=name)
