"""Chunks: one pass where there is room, several where there is not, and every answer in its place."""

import threading

import numpy as np
import pytest

from metaprior import MetaGPRegressor
from metaprior.predictive import chunks, integrated
from metaprior.predictive.chunks import Chunks, in_threads, num_threads


def _counted(passes: list):
    def make():
        passes.append(1)
        for start in range(3):
            yield slice(start, start + 1), np.full(10, start)

    return Chunks(make)


def test_what_is_small_is_computed_once():
    passes: list[int] = []
    kept = _counted(passes)
    assert [len(list(kept)) for _ in range(3)] == [3, 3, 3]
    assert len(passes) == 1


def test_what_is_large_is_computed_at_every_pass_and_not_kept(monkeypatch):
    monkeypatch.setattr(chunks, "MOST_KEPT", 20)
    passes: list[int] = []
    again = _counted(passes)
    assert [len(list(again)) for _ in range(3)] == [3, 3, 3]
    assert len(passes) == 3
    assert again._kept is None


@pytest.mark.parametrize("workers", ["1", "3"])
def test_answers_come_in_the_order_of_the_chunks(monkeypatch, workers):
    monkeypatch.setenv("NPROC", workers)
    assert num_threads() == int(workers)
    seen = set()

    def function(chunk):
        seen.add(threading.get_ident())
        return chunk[0] ** 2

    assert in_threads(function, ((n,) for n in range(100))) == [n**2 for n in range(100)]
    assert (len(seen) == 1) or workers == "3"


def test_every_question_is_answered_by_one_pass_over_the_rows(monkeypatch):
    x = np.linspace(-1, 1, 40)[:, None]
    y = np.sin(3 * x[:, 0])
    model = MetaGPRegressor((3,), max_iter=30, random_state=0, input_kernel=None).fit(x, y)
    calls, moments = [], integrated._moments
    monkeypatch.setattr(integrated, "_moments", lambda *a: calls.append(1) or moments(*a))
    said = model.predict_distribution(x)
    _ = said.mean, said.std, said.entropy, said.interval(0.9), said.log_prob(y), said.crps(y), said.cdf(y)
    assert len(calls) == 1
