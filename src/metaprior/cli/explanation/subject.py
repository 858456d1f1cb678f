"""What a report is about: a model, the rows of a table, what the model predicts there, and what is known of them."""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metaprior.cli.streams import printable
from metaprior.tables.columns import Date, missing
from metaprior.tables.target import CLASSIFICATION

if TYPE_CHECKING:
    import pandas as pd

    from metaprior.predictive import Predictive
    from metaprior.tables.model import TableModel

#: The most rows that a report looks at; of more, so many are drawn at random.
MOST_ROWS = 2_000
#: The rows that it lists, and the columns that it shows of them.
NUM_LISTED, MOST_COLUMNS = 10, 8
#: Rows from which a curve is shown a second time, closer, and the rows that are shown then.
MANY_ROWS, DETAIL = 200, 80
#: The longest name in a figure, in characters.
LONGEST_NAME = 32


class Listed(NamedTuple):
    """A table of rows: the names of its columns, which may be the same, and the cells."""

    head: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True)
class Subject:
    """A model and a table. `numbers` are the positions of the rows in the file, from 1."""

    model: "TableModel"
    frame: "pd.DataFrame"
    numbers: np.ndarray
    allow_unseen: bool

    @classmethod
    def of(cls, model: "TableModel", frame: "pd.DataFrame", *, allow_unseen: bool, seed: int) -> "Subject":
        """Return the subject with at most `MOST_ROWS` rows."""
        kept = np.arange(len(frame))
        if len(frame) > MOST_ROWS:
            kept = np.sort(np.random.default_rng(seed).choice(len(frame), MOST_ROWS, replace=False))
        return cls(model, frame.iloc[kept].reset_index(drop=True), kept + 1, allow_unseen)

    @property
    def target(self) -> str:
        """The name of the column that is predicted."""
        return self.model.schema.target.name

    @property
    def is_classified(self) -> bool:
        """Whether classes are predicted."""
        return self.model.schema.target.task == CLASSIFICATION

    @cached_property
    def names(self) -> list[str]:
        """The names of the features as figures show them."""
        schema = self.model.schema
        shown = {}
        for column in schema.columns:
            for feature in column.features():
                since = f" (days since {column.first[:10]})" if isinstance(column, Date) else ""
                shown[feature] = figure_text(feature) + since
        return [shown[feature] for feature in schema.features()]

    @cached_property
    def x(self) -> np.ndarray:
        """The rows as numbers."""
        return self.model.schema.encoded(self.frame, allow_unseen=self.allow_unseen)

    @cached_property
    def named_x(self) -> "pd.DataFrame":
        """The rows as numbers, with names for figures."""
        import pandas as pd

        return pd.DataFrame(self.x, columns=self.unique_names)

    @property
    def unique_names(self) -> list[str]:
        """The names for figures, with a number where two are the same after they were cut."""
        return [name if self.names.count(name) == 1 else f"{name} #{k}" for k, name in enumerate(self.names, 1)]

    @cached_property
    def named_estimator(self) -> Any:
        """The fitted estimator, with names for its features, so that figures of it show them."""
        named = copy.copy(self.model.estimator)
        named.feature_names_in_ = np.array(self.unique_names, object)
        return named

    @property
    def is_long_curve(self) -> bool:
        """Whether the rows are so many along one column that a closer look at the last of them helps."""
        return self.x.shape[1] == 1 and len(self.x) > MANY_ROWS

    @property
    def last_rows(self) -> np.ndarray:
        """The rows with the largest values of the first column."""
        return np.argsort(self.x[:, 0], kind="stable")[-DETAIL:]

    @cached_property
    def y(self) -> np.ndarray | None:
        """The targets, or None if the table has none for all of its rows."""
        if self.target not in self.frame.columns or missing(self.frame[self.target]).any():
            return None
        return self.model.schema.target.encoded(self.frame[self.target])

    @cached_property
    def predictive(self) -> "Predictive":
        """The predictive distribution at the rows."""
        return self.model.estimator.predict_distribution(self.x)

    @cached_property
    def scores(self) -> dict[str, float]:
        """The scores of `metaprior evaluate` at these rows, and R2 of a regression; empty without targets."""
        if self.y is None:
            return {}
        found = self.model.scores(self.frame, allow_unseen=self.allow_unseen)
        if not self.is_classified and np.var(self.y) > 0:
            found["r2"] = float(1 - np.mean((self.y - self.predictive.mean) ** 2) / np.var(self.y))
        return found

    @cached_property
    def doubt(self) -> np.ndarray:
        """What more data would remove at every row: the epistemic standard deviation, or mutual information."""
        own = self.predictive
        return own.mutual_information if self.is_classified else np.sqrt(own.epistemic_variance)

    def farthest(self) -> "Listed":
        """Return the rows with the largest doubt: their numbers, their cells, and what is predicted there."""
        worst = np.argsort(-self.doubt, kind="stable")[:NUM_LISTED]
        names = [column.name for column in self.model.schema.columns][:MOST_COLUMNS]
        columns = {f"predicted {name}": value for name, value in self._predicted(worst).items()}
        columns["times the median doubt"] = self.doubt[worst] / max(float(np.median(self.doubt)), 1e-300)
        cells = [[self.numbers[row], *self.frame.iloc[row][names]] for row in worst]
        told = zip(*columns.values(), strict=True)
        return Listed(["row", *names, *columns], [[*own, *said] for own, said in zip(cells, told, strict=True)])

    def _predicted(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        own = self.predictive
        if self.is_classified:
            best = np.argmax(own.probabilities[rows], axis=1)
            return {
                "class": self.model.estimator.classes_[best],
                "probability": own.probabilities[rows, best],
                "mutual information": self.doubt[rows],
            }
        low, high = own.interval(0.95)
        return {
            "mean": own.mean[rows],
            "low 95": low[rows],
            "high 95": high[rows],
            "epistemic std": self.doubt[rows],
        }


def figure_text(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name that a figure can show: short and printable."""
    short = name if len(name) <= longest else f"{name[: longest - 3]}..."
    return printable(short).replace("\n", " ")
