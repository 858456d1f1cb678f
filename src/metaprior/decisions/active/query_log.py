"""The query log of a pool: which rows were asked for, what was answered, and how good the fits were.

A log is never changed. Every method returns a new one, so a call that raises an error leaves the loop as it was.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metaprior.decisions.active.checks import checked_targets
from metaprior.decisions.content import checked_count, checked_fields, checked_tuple, expect_content

#: What the record of a fit has, and the scores that it may have.
_OF_A_FIT, _SCORES = {"n_rows", "fresh", "seconds"}, {"rmse", "accuracy", "nll"}


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

    @classmethod
    def checked(cls, content: Any, n_rows: int, n_before: int, *, classes: bool) -> "QueryLog":
        """Return the log that a file contains, or raise an error if it is not one of a pool of `n_rows` rows.

        Every fit used `n_before` rows besides the answered ones.
        """
        fields = checked_fields("state", content, [field.name for field in dataclasses.fields(cls)])
        rows, skipped, pending = (checked_tuple(name, fields[name], int) for name in ("rows", "skipped", "pending"))
        places = rows + skipped + pending
        inside = all(0 <= row < n_rows for row in places) and len(set(places)) == len(places)
        expect_content("rows, skipped, pending", places, f"rows of a pool of {n_rows}, each once", inside)
        checked_tuple("values", fields["values"], float, len(rows))
        checked_tuple("pending_values", fields["pending_values"], float, len(pending))
        checked_count("n_asked", fields["n_asked"])
        _expect_fits(fields["fits"], n_before + len(rows))
        targets, n_targets = fields["targets"], 0
        if targets is not None:
            expect_content("targets", targets, "an array", isinstance(targets, np.ndarray))
            targets = checked_targets("targets", targets, classes=classes)
            n_targets = len(targets)
        expect_content("targets", n_targets, f"{len(rows)} targets, one per answered row", n_targets == len(rows))
        return cls(**{**fields, "targets": targets})

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


def _expect_fits(fits: Any, n_rows: int) -> None:
    """Raise an error unless these are records of fits to more and more rows, up to `n_rows`."""
    last = 0
    for fit in checked_tuple("fits", fits, dict):
        expect_content("fits", fit, "records of fits", _OF_A_FIT <= fit.keys() <= _OF_A_FIT | _SCORES)
        last = checked_count("fits: n_rows", fit["n_rows"], last + 1, n_rows)
        expect_content("fits: fresh", fit["fresh"], "True or False", isinstance(fit["fresh"], bool))
        for name in fit.keys() - {"n_rows", "fresh"}:
            expect_content(f"fits: {name}", fit[name], "a number", isinstance(fit[name], float))
