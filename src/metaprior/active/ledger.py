"""The ledger of a loop: what was asked, what was answered and how good the fits between were."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior.decisions.records import needed_pandas

if TYPE_CHECKING:
    import pandas as pd


@dataclass
class Ledger:
    """Rows of a pool by what became of them; rows that are open have been asked for and not answered."""

    rows: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    targets: np.ndarray | None = None
    skipped: list[int] = field(default_factory=list)
    open_rows: list[int] = field(default_factory=list)
    open_values: list[float] = field(default_factory=list)
    num_asked: int = 0
    fits: list[dict[str, Any]] = field(default_factory=list)

    def free(self, num_rows: int) -> np.ndarray:
        """Return the rows of the pool that can still be asked for."""
        return np.setdiff1d(np.arange(num_rows), self.rows + self.skipped)

    def asked(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Keep a new question."""
        self.open_rows, self.open_values = rows.tolist(), values.tolist()
        self.num_asked += 1

    def answered(self, rows: list[int], targets: np.ndarray) -> None:
        """Keep answers; rows that nobody asked for have no value."""
        values = dict(zip(self.open_rows, self.open_values, strict=True))
        self.values += [values.get(row, np.nan) for row in rows]
        self.targets = targets if self.targets is None else np.concatenate([self.targets, targets])
        self.rows += rows
        self._close(rows)

    def passed_over(self, rows: list[int]) -> None:
        """Never ask for these rows."""
        self.skipped += rows
        self._close(rows)

    def _close(self, rows: list[int]) -> None:
        left = [pair for pair in zip(self.open_rows, self.open_values, strict=True) if pair[0] not in rows]
        self.open_rows, self.open_values = [row for row, _ in left], [value for _, value in left]

    def fitted(self, record: dict[str, Any]) -> None:
        """Keep what a fit was like; the first to see so many rows counts."""
        if not self.fits or self.fits[-1]["num_rows"] < record["num_rows"]:
            self.fits.append(record)

    def frame(self, num_before: int, score_names: Sequence[str]) -> "pd.DataFrame":
        """Return a line a query, with the first fit that saw its answer, of which `num_before` rows were no queries."""
        pandas = needed_pandas("history")
        none = {"num_rows": None, **dict.fromkeys(score_names, np.nan), "seconds": np.nan, "fresh": None}
        lines = []
        for query, (row, value) in enumerate([(None, np.nan), *zip(self.rows, self.values, strict=True)]):
            fits = [fit for fit in self.fits if fit["num_rows"] >= num_before + query]
            seen = fits[0] if fits else {}
            if query or seen.get("num_rows") == num_before:
                own = {name: seen.get(name, missing) for name, missing in none.items()}
                lines.append({"query": query, "row": row, "acquisition": value, **own})
        frame = pandas.DataFrame(lines, columns=["query", "row", "acquisition", *none])
        return frame.astype({"row": "Int64", "num_rows": "Int64", "fresh": "boolean"})
