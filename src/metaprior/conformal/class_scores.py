"""How badly each class fits the predicted probabilities: the lower, the better.

lac     1 - p_c: the smallest sets on average, but rows that are hard have too low a coverage.
aps     sum of p over the classes that are more probable than c, plus u p_c: adapts to how hard a row is.
raps    aps plus penalty max(0, rank_c - free_rank): without the long tail of improbable classes.

The number u is uniform in [0, 1]. It is a function of the row's probabilities and the seed, so that the same row has
the same set in every call, and the coverage is exact.
"""

import hashlib
from typing import Any, NamedTuple

import numpy as np

from metaprior.estimators.checks import expect, expect_one_of, is_number, is_whole

#: The names of the scores.
SCORES = ("aps", "raps", "lac")


class ClassScore(NamedTuple):
    """A score with its settings."""

    name: str
    penalty: float
    free_rank: int
    seed: int

    def check(self) -> None:
        """Raise an error if a setting is not as expected."""
        expect_one_of("conformity_score", self.name, SCORES)
        expect("penalty", self.penalty, "a number of at least 0", is_number(self.penalty) and self.penalty >= 0)
        free = self.free_rank
        expect("free_rank", free, "a whole number of at least 0", is_whole(free) and free >= 0)

    def __call__(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the score of every class at every row, [N, C]."""
        if self.name == "lac":
            return 1 - probabilities
        order = np.argsort(-probabilities, axis=1, kind="stable")
        ordered = np.take_along_axis(probabilities, order, axis=1)
        above = np.cumsum(ordered, axis=1) - ordered
        scores = above + uniform_of_rows(probabilities, self.seed)[:, None] * ordered
        if self.name == "raps":
            ranks = np.arange(1, probabilities.shape[1] + 1)
            scores = scores + self.penalty * np.maximum(ranks - self.free_rank, 0)
        by_class: np.ndarray = np.empty_like(scores)
        np.put_along_axis(by_class, order, scores, axis=1)
        return by_class


def uniform_of_rows(rows: np.ndarray, seed: int) -> np.ndarray:
    """Return a number in [0, 1) for every row, which its content and the seed decide."""
    key = int(seed).to_bytes(8, "little")
    rows = np.ascontiguousarray(rows, np.float64)
    digests = b"".join(hashlib.blake2b(row.tobytes(), digest_size=8, key=key).digest() for row in rows)
    return (np.frombuffer(digests, "<u8") >> 11) * 2.0**-53


def column_of(classes: np.ndarray, y: Any) -> np.ndarray:
    """Return the number of every label among the classes, or raise an error if one is not among them."""
    labels = np.asarray(y)
    found = np.clip(np.searchsorted(classes, labels), 0, len(classes) - 1)
    strange = classes[found] != labels
    if np.any(strange):
        raise ValueError(
            f"y: expected the classes of the fit, {classes.tolist()}, in the rows of calibration; got "
            f"{labels[strange].tolist()[0]!r}. Give the estimator rows of every class."
        )
    return found
