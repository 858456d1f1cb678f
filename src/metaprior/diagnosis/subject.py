"""What the checks look at: a fitted estimator, rows with their targets, and what follows from both."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from sklearn.base import is_classifier
from sklearn.utils import indexable

from metaprior.estimators import MetaGPClassifier, MetaGPRegressor
from metaprior.estimators.base import Estimator
from metaprior.estimators.checks import expect_one_of
from metaprior.metrics import just_below
from metaprior.model import Model
from metaprior.output_layer.base import Batch
from metaprior.predictive import Predictive
from metaprior.predictive.from_sklearn import at_end, distribution_predictor_of

#: Whether the rows were fitted to: "auto" finds out where it can.
ROWS = ("auto", "held_out", "training")
#: Rows that are looked at; of more, so many are chosen at random.
MOST_ROWS = 2000
#: Sets of targets that are drawn from the model itself, to see what it would make of data of its own.
NUM_REPLICATES = 128
#: Standardised rows that are no further apart than this are the same (training rows may be kept in float32).
SAME_ROW = 1e-4


class TrainingRows(NamedTuple):
    """The rows that a model was fitted to, in standardised units."""

    x: np.ndarray
    y: np.ndarray


class Subject:
    """A fitted estimator and rows with their targets.

    Parameters
    ----------
    model : estimator
        A fitted estimator, or a pipeline or search with one at its end.
    X, y : array-like
        The rows and their targets.
    rows : {"auto", "held_out", "training"}
        Whether the model was fitted to the rows.
    seed : int
        Determines which rows are looked at, if there are many, and all draws.
    """

    def __init__(self, model: Any, X: Any, y: Any, *, rows: str, seed: int) -> None:
        expect_one_of("rows", rows, ROWS)
        predictor = distribution_predictor_of("model", model)
        X, y = indexable(*(np.asarray(data) if isinstance(data, (list, tuple)) else data for data in (X, y)))
        X, y = _some_rows(X, y, seed)
        self.predictive = predictor(model, X)
        self.estimator, self.x = at_end(model, X)
        self.seed = seed
        self.targets = self._as_targets(y)
        self.is_training, self._found_by = self._are_training_rows(rows)

    # --- the rows -------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def is_classification(self) -> bool:
        """Whether the targets are classes."""
        return bool(is_classifier(self.estimator))

    def _as_targets(self, y: Any) -> np.ndarray:
        """Return the targets as numbers: for a classifier the positions in `classes_`."""
        values = np.asarray(y)
        if not self.is_classification:
            return np.asarray(values, np.float64).reshape(np.shape(self.predictive.mean))
        classes = np.asarray(self.estimator.classes_)
        unseen = sorted(set(np.ravel(values).tolist()) - set(classes.tolist()))
        if unseen:
            raise ValueError(f"y: expected classes among {classes.tolist()}; got {unseen[:5]} as well.")
        return np.searchsorted(classes, np.ravel(values))

    def _are_training_rows(self, asked: str) -> tuple[bool, str]:
        """Return whether the model was fitted to the rows, and how that is known."""
        if asked != "auto":
            return asked == "training", "as you say"
        if self.training is None:
            return False, "assumed, because this model keeps no training rows: rows='training' would say otherwise"
        standardised = self.estimator._fitted_targets().standardised(self.targets)
        known = np.column_stack([self.training.x, self.training.y])
        distance, _ = cKDTree(known).query(np.column_stack([self.x_unit, standardised]))
        share = float(np.mean(distance < SAME_ROW))
        return share > 0.5, f"{share:.0%} of them are among the rows that the model keeps"

    @property
    def title(self) -> str:
        """The estimator, and which rows these are."""
        kind = "training rows" if self.is_training else "held-out rows"
        return f"{type(self.estimator).__name__} on {len(self)} {kind} ({self._found_by})"

    @property
    def labels(self) -> np.ndarray:
        """The targets as the estimator was given them: of classes, their labels instead of their positions."""
        return self.estimator.classes_[self.targets] if self.is_classification else self.targets

    @property
    def rows_name(self) -> str:
        """What the rows are called in a sentence."""
        return f"{len(self)} {'training' if self.is_training else 'held-out'} rows"

    # --- the model ------------------------------------------------------------------

    @property
    def is_metagp(self) -> bool:
        """Whether the estimator is a MetaGP, whose parts can be looked at."""
        return isinstance(self.estimator, MetaGPRegressor | MetaGPClassifier)

    @property
    def model(self) -> Model:
        """The fitted model of a MetaGP."""
        return self.estimator.model_

    @cached_property
    def x_unit(self) -> np.ndarray:
        """The rows in standardised units."""
        return self.estimator._standardised(self.x)

    @cached_property
    def training(self) -> TrainingRows | None:
        """The rows that the model keeps because its posterior needs them; None if it keeps none."""
        kept = getattr(self.model.output, "rows", None) if self.is_metagp else None
        if kept is None:
            return None
        batch: Batch = kept.value
        real = np.asarray(batch.weight) > 0
        return TrainingRows(np.asarray(batch.x, np.float64)[real], np.asarray(batch.y, np.float64)[real])

    @cached_property
    def column_names(self) -> list[str]:
        """The names of the input columns."""
        names = getattr(self.estimator, "feature_names_in_", None)
        number = int(self.estimator.n_features_in_)
        return [f"column {d}" for d in range(number)] if names is None else [repr(str(name)) for name in names]

    @property
    def seen_x_unit(self) -> np.ndarray:
        """Standardised rows that show the spread of the data: those of the fit if they are known."""
        return self.x_unit if self.training is None else self.training.x

    # --- what the predictions say of the targets --------------------------------------

    @cached_property
    def pit(self) -> np.ndarray:
        """The probability integral transform of every target, [N, outputs]: uniform if the model is right."""
        return self._pit_of(self.targets)

    def _pit_of(self, targets: np.ndarray) -> np.ndarray:
        below, at = self.predictive.cdf(just_below(targets)), self.predictive.cdf(targets)
        part = np.random.default_rng(self.seed).uniform(size=np.shape(at))
        # the two differ only where single values have a probability (counts)
        return columns(below + part * (at - below))

    @cached_property
    def replicates(self) -> list[np.ndarray] | None:
        """Targets that the model itself expects at these rows, functions and noise drawn; None if it cannot draw."""
        if not isinstance(self.predictive, Predictive):
            return None
        drawn = list[np.ndarray]()
        for turn in range(NUM_REPLICATES):
            drawn += list(self.predictive.sample(self.seed + turn))
            if len(drawn) >= NUM_REPLICATES:
                break
        return drawn[:NUM_REPLICATES]

    @cached_property
    def replicate_pits(self) -> np.ndarray | None:
        """The transforms of targets that the model itself expects, [replicates, N, outputs].

        If the model is right, its held-out targets are one more replicate: errors that rows share, because the function
        is uncertain, are the same in these. None for training rows, which the model has seen, and where the model
        cannot draw.
        """
        if self.is_training or self.replicates is None:
            return None
        return np.stack([self._pit_of(targets) for targets in self.replicates])

    @cached_property
    def neighbours(self) -> np.ndarray:
        """The numbers of the two nearest other rows of every row, in standardised inputs, [N, 2]."""
        x = self.x_unit if isinstance(self.estimator, Estimator) else _standardised(np.asarray(self.x, np.float64))
        return cKDTree(x).query(x, k=3)[1][:, 1:]


def columns(values: np.ndarray) -> np.ndarray:
    """Return values of one output or of several as columns."""
    return values.reshape(len(values), -1)


def _some_rows(X: Any, y: Any, seed: int) -> tuple[Any, Any]:
    """Return all rows, or `MOST_ROWS` of them."""
    num_rows = len(y)
    if num_rows <= MOST_ROWS:
        return X, y
    chosen = np.sort(np.random.default_rng(seed).permutation(num_rows)[:MOST_ROWS])
    X, y = (data.iloc[chosen] if hasattr(data, "iloc") else data[chosen] for data in (X, y))
    return X, y


def _standardised(x: np.ndarray) -> np.ndarray:
    spread = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1)
