"""The query log of a pool: which rows were asked for, what was answered, and how good the fits were.

A log is never changed. Every method returns a new one, so a call that raises an error leaves the loop as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class QueryLog:
    """The answered, skipped and pending rows of a pool.

    Parameters
    ----------
    rows, values, targets :
        The answered rows in the order of their answers, with their acquisition values and targets.
    skipped :
        Rows that are never asked for.
    pending, pending_values :
        The rows that have been asked for and not answered, with their acquisition values.
    n_asked :
        The number of questions so far.
    fits :
        A record of every fit: `n_rows`, `fresh`, `seconds` and its scores.
    """

    rows: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    targets: np.ndarray | None = None
    skipped: tuple[int, ...] = ()
    pending: tuple[int, ...] = ()
    pending_values: tuple[float, ...] = ()
    n_asked: int = 0
    fits: tuple[dict[str, Any], ...] = ()

    def free(self, n_rows: int) -> np.ndarray:
        """Return the rows of the pool that can still be asked for."""
        return np.setdiff1d(np.arange(n_rows), self.rows + self.skipped)

    def with_question(self, rows: np.ndarray, values: np.ndarray) -> "QueryLog":
        """Return the log after a new question."""
        question = tuple(rows.tolist()), tuple(values.tolist())
        return replace(self, pending=question[0], pending_values=question[1], n_asked=self.n_asked + 1)

    def with_answers(self, rows: Sequence[int], targets: np.ndarray) -> "QueryLog":
        """Return the log after answers. The value of rows that were not asked for is NaN."""
        values = dict(zip(self.pending, self.pending_values, strict=True))
        return replace(
            self._without_pending(rows),
            rows=(*self.rows, *rows),
            values=(*self.values, *(values.get(row, np.nan) for row in rows)),
            targets=targets if self.targets is None else np.concatenate([self.targets, targets]),
        )

    def with_skipped(self, rows: Sequence[int]) -> "QueryLog":
        """Return the log after rows were skipped."""
        return replace(self._without_pending(rows), skipped=(*self.skipped, *rows))

    def _without_pending(self, rows: Sequence[int]) -> "QueryLog":
        left = [pair for pair in zip(self.pending, self.pending_values, strict=True) if pair[0] not in rows]
        return replace(self, pending=tuple(row for row, _ in left), pending_values=tuple(value for _, value in left))

    def has_fit(self, n_rows: int) -> bool:
        """Return whether there is a fit to at least `n_rows` rows."""
        return bool(self.fits) and self.fits[-1]["n_rows"] >= n_rows

    def with_fit(self, record: dict[str, Any]) -> "QueryLog":
        """Return the log after a fit."""
        return replace(self, fits=(*self.fits, record))

    def columns(self, n_before: int, score_names: Sequence[str]) -> dict[str, list[Any]]:
        """Return one line per answer, with the first fit that used it. `n_before` rows of every fit are not answers."""
        nothing = {"n_rows": None, **dict.fromkeys(score_names, np.nan), "seconds": np.nan, "fresh": None}
        found: dict[str, list[Any]] = {name: [] for name in ("observation", "row", "acquisition", *nothing)}
        for observation, (row, value) in enumerate([(None, np.nan), *zip(self.rows, self.values, strict=True)]):
            fits = [fit for fit in self.fits if fit["n_rows"] >= n_before + observation]
            seen = fits[0] if fits else {}
            if observation or seen.get("n_rows") == n_before:
                line = {"observation": observation, "row": row, "acquisition": value}
                for name, item in (line | {name: seen.get(name, missing) for name, missing in nothing.items()}).items():
                    found[name].append(item)
        return found
