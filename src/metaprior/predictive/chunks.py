"""Chunks of rows: kept where there is room for them, and reduced by several threads."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

#: Numbers that a predictive distribution keeps at the most: half a gigabyte.
MOST_KEPT = 1 << 26

Chunk = TypeVar("Chunk")
Answer = TypeVar("Answer")


class Chunks(Generic[Chunk]):
    """What one pass over the rows finds, chunk by chunk: computed once, or again at every pass where it is too large.

    `make` begins a pass; `size` is how many numbers a whole pass yields.
    """

    def __init__(self, make: Callable[[], Iterable[Chunk]], size: int) -> None:
        self._make, self._is_kept = make, size <= MOST_KEPT
        self._kept: list[Chunk] | None = None

    def __iter__(self) -> Iterator[Chunk]:
        """Begin a pass."""
        if not self._is_kept:
            return iter(self._make())
        if self._kept is None:
            self._kept = list(self._make())
        return iter(self._kept)


def in_threads(function: Callable[[Chunk], Answer], chunks: Iterable[Chunk]) -> list[Answer]:
    """Return the function of every chunk; NumPy's loops let other threads run, so all cores are used."""
    parts = list(chunks)
    workers = min(num_threads(), len(parts))
    if workers <= 1:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, parts))


def num_threads() -> int:
    """Return how many threads this process may use: NPROC where it is set, as for XLA, else the cores it may run on."""
    named = os.environ.get("NPROC", "")
    if named.isdigit() and int(named) > 0:
        return int(named)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
