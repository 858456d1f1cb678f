"""Active learning on several splits: each queries its pool row by row, and all models are fitted side by side."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from metaprior.decisions import choose
from metaprior.decisions.active.acquisition import random_choice


class Split(NamedTuple):
    """Indices of rows: those known at the start, those to test on, and those to choose from."""

    start: np.ndarray
    test: np.ndarray
    pool: np.ndarray


def random_split(num_rows: int, num_start: int, num_test: int, rng: np.random.Generator) -> Split:
    """Split all rows at random; those that are neither start nor test form the pool."""
    if num_start + num_test >= num_rows:
        raise ValueError(
            f"random_split: expected more than {num_start} + {num_test} rows, so that a pool is left; got {num_rows}."
        )
    order = rng.permutation(num_rows)
    return Split(*np.split(order, [num_start, num_start + num_test]))


class Pool:
    """The rows of one split: which are known, in the order of the queries, and which can still be queried.

    Parameters
    ----------
    X, y : ndarray
        All rows of the data set.
    split : Split
    rng : numpy.random.Generator
        The source of randomness in choices.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, split: Split, rng: np.random.Generator) -> None:
        self.X, self.y, self.test, self.rng = X, y, split.test, rng
        self.known, self.free = split.start.tolist(), split.pool.tolist()

    @property
    def labelled(self) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets that are known."""
        return self.X[self.known], self.y[self.known]

    def ask(self, strategy: str, model: Any) -> int:
        """Move the row that a strategy of `metaprior.decisions` chooses from the pool to the known rows; return it."""
        if strategy == "random":
            chosen = random_choice(len(self.free), 1, self.rng)
        else:
            chosen = choose(strategy, model.predict_distribution(self.X[self.free]), 1, self.rng)
        row = self.free.pop(int(chosen.rows[0]))
        self.known.append(row)
        return row


def asked(
    pools: Sequence[Pool], strategy: str, num_queries: int, fit: Callable[[int], Sequence[Any]]
) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the number of queries so far and the models that `fit` returns for the known rows, one per pool."""
    models = fit(0)
    yield 0, models
    for query in range(1, num_queries + 1):
        for pool, model in zip(pools, models, strict=True):
            pool.ask(strategy, model)
        models = fit(query)
        yield query, models
