"""A fitted estimator together with the schema of its table: it takes data frames and returns data frames."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from metaprior.io.saving import save
from metaprior.metrics import scores
from metaprior.names import nearest
from metaprior.tables.columns import Date, shown
from metaprior.tables.errors import TableError
from metaprior.tables.files import pandas
from metaprior.tables.schema import Schema
from metaprior.tables.target import CLASSIFICATION
from metaprior.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

    from metaprior.predictive import Predictive


@dataclass(eq=False)
class TableModel:
    """A fitted estimator and the schema of the table that it was fitted to. `metaprior.load` restores it.

    Parameters
    ----------
    estimator : estimator of this library
        Fitted to the training table as `schema` encodes it.
    schema : Schema
        What the columns contain.
    summary : dict
        How the fit went, in plain values.
    """

    estimator: Any
    schema: Schema
    summary: dict[str, Any]

    def __post_init__(self) -> None:
        """Raise an error unless the estimator was fitted to tables with this schema."""
        schema, fitted = self.schema, vars(self.estimator).get("n_features_in_")
        if not isinstance(schema, Schema) or not isinstance(self.summary, dict):
            raise ValueError("TableModel: expected a fitted estimator, a Schema and a dict.")
        names = [column.name for column in schema.columns]
        if len(set(names)) != len(names) or fitted != len(schema.features()):
            raise ValueError(
                f"TableModel: expected an estimator of the {len(schema.features())} features that the columns become; "
                f"it was fitted to {fitted}."
            )
        schema.target.check(is_classifier(self.estimator))
        for column in schema.columns:
            if isinstance(column, Date):
                column.check()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        return {"estimator": self.estimator, "schema": self.schema, "summary": self.summary}

    def saved_state(self) -> dict[str, Any]:
        """Return nothing: a table model is its parameters."""
        return {}

    def restore_state(self, state: dict[str, Any]) -> None:
        """Do nothing: there is no state beyond the parameters."""

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the estimator and the schema to one file."""
        save(self, path, overwrite=overwrite)

    def predict_distribution(self, frame: "pd.DataFrame", *, allow_unseen: bool = False) -> "Predictive":
        """Return the predictive distribution at the rows of a table."""
        return self.estimator.predict_distribution(self.schema.encoded(frame, allow_unseen=allow_unseen))

    def predict(
        self,
        frame: "pd.DataFrame",
        *,
        intervals: Sequence[float] = (0.95,),
        keep: Sequence[str] = (),
        allow_unseen: bool = False,
    ) -> "pd.DataFrame":
        """Return a table of predictions with one row per row of `frame`.

        Parameters
        ----------
        frame : DataFrame
            A table with the input columns of the training table, in any order.
        intervals : sequence of float
            The levels of the central intervals (regression).
        keep : sequence of str
            Columns of the table that are copied to the predictions.
        allow_unseen : bool
            Whether a category may have a value that was not in the training table.

        Returns
        -------
        DataFrame
            For regression: `mean`, `std`, `epistemic_std` (the part that more data would remove), and the two ends of
            every interval, such as `low_95` and `high_95`. For classification: `class`, `p_<class>` for every class,
            `entropy` and `mutual_information` (the part of the entropy that more data would remove), both in nats.
        """
        absent = [name for name in keep if name not in frame.columns]
        if absent:
            hint = nearest(absent[0], list(frame.columns))
            raise TableError(f"the table has no column {absent[0]!r} to copy{hint}.", column=absent[0])
        self._tell_of_extra(frame, keep)
        predicted = self.predict_distribution(frame, allow_unseen=allow_unseen)
        found = self._classes(predicted) if predicted.is_classification else _numbers(predicted, intervals)
        clash = [name for name in keep if name in found]
        if clash:
            raise TableError(f"column {clash[0]!r} cannot be copied: the predictions have a column of that name.")
        return pandas().DataFrame({**{name: frame[name].to_numpy() for name in keep}, **found})

    def _classes(self, predicted: "Predictive") -> dict[str, np.ndarray]:
        classes, probabilities = self.estimator.classes_, predicted.probabilities
        return {
            "class": classes[np.argmax(probabilities, axis=1)],
            **{f"p_{label}": probabilities[:, number] for number, label in enumerate(classes)},
            "entropy": predicted.entropy,
            "mutual_information": predicted.mutual_information,
        }

    def scores(self, frame: "pd.DataFrame", *, allow_unseen: bool = False) -> dict[str, float]:
        """Score the predictions for a table whose targets are known; see `metrics.scores`."""
        target = self.schema.target
        if target.name not in frame.columns:
            hint = nearest(target.name, list(frame.columns))
            raise TableError(f"the table has no column {target.name!r} to compare with{hint}.", column=target.name)
        self._tell_of_extra(frame)
        y = target.encoded(frame[target.name])
        if target.task == CLASSIFICATION:
            self._check_classes(y)
        return scores(self.predict_distribution(frame, allow_unseen=allow_unseen), y)

    def _check_classes(self, labels: np.ndarray) -> None:
        classes = self.estimator.classes_
        unseen = np.where(~np.isin(labels, classes))[0]
        if len(unseen):
            value, known = labels[unseen[0]].item(), shown(tuple(classes.tolist()))
            what = f"the class {value!r} was not in the training table, which has {known}; leave such rows out."
            raise TableError.at(unseen[0], self.schema.target.name, what, value)

    def _tell_of_extra(self, frame: "pd.DataFrame", expected: Sequence[str] = ()) -> None:
        extra = self.schema.extra(frame, expected)
        if extra:
            told = shown(tuple(extra))
            warn_user(f"columns that the model does not know are ignored: {told}.")


def _numbers(predicted: "Predictive", intervals: Sequence[float]) -> dict[str, np.ndarray]:
    found = {
        "mean": predicted.mean,
        "std": predicted.std,
        "epistemic_std": np.sqrt(predicted.epistemic_variance),
    }
    for level in intervals:
        found[f"low_{100 * level:g}"], found[f"high_{100 * level:g}"] = predicted.interval(level)
    return found
