"""Chunks of rows: kept where there is room for them, and reduced by several threads."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

#: Numbers that a predictive distribution keeps at the most: half a gigabyte.
MOST_KEPT = 1 << 26

Chunk = TypeVar("Chunk", bound=tuple[Any, ...])
Answer = TypeVar("Answer")


class Chunks(Generic[Chunk]):
    """What a pass over the rows finds, chunk by chunk: computed once, or at every pass where it is too much to keep.

    `make` begins a pass.
    """

    def __init__(self, make: Callable[[], Iterable[Chunk]], kept: list[Chunk] | None = None) -> None:
        self._make, self._kept = make, kept

    @property
    def kept(self) -> list[Chunk] | None:
        """What a pass has found, if there was one and it is kept."""
        return self._kept

    def __iter__(self) -> Iterator[Chunk]:
        """Begin a pass."""
        if self._kept is not None:
            yield from self._kept
            return
        found: list[Chunk] | None = []
        size = 0
        for chunk in self._make():
            size += sum(np.size(part) for part in chunk)
            if found is not None:
                found.append(chunk)
            if size > MOST_KEPT:
                found = None
            yield chunk
        self._kept = found


def rows_of(kept: Sequence[tuple[Any, ...]], arrays: Sequence[np.ndarray], rows: np.ndarray) -> np.ndarray:
    """Return some of the rows, [S, rows, ...], of arrays that belong to chunks, the slices of which come first."""
    found = np.empty((arrays[0].shape[0], len(rows), *arrays[0].shape[2:]))
    for (place, *_), array in zip(kept, arrays, strict=True):
        is_here = (rows >= place.start) & (rows < place.stop)
        found[:, is_here] = array[:, rows[is_here] - place.start]
    return found


def in_threads(function: Callable[[Chunk], Answer], chunks: Iterable[Chunk]) -> list[Answer]:
    """Return the function of every chunk, some at a time. NumPy's loops let other threads run: all cores are used."""
    workers, found, left = num_threads(), list[Answer](), iter(chunks)
    with ThreadPoolExecutor(workers) as pool:
        while group := list(islice(left, 8 * workers)):
            found.extend(map(function, group) if workers == 1 or len(group) == 1 else pool.map(function, group))
    return found


def num_threads() -> int:
    """Return how many threads this process may use: NPROC where it is set, as for XLA, else the cores it may run on."""
    named = os.environ.get("NPROC", "")
    if named.isdigit() and int(named) > 0:
        return int(named)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
