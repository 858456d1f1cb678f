"""Split conformal prediction for a classifier: sets of classes that contain the right one."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from metaprior.conformal.class_scores import ClassScore, column_of
from metaprior.conformal.split import SplitConformal


@dataclass(eq=False, repr=False)
class ConformalClassifier(ClassifierMixin, SplitConformal):
    """Sets of classes that contain the right one with a probability of at least `level`.

    The probability is over the rows of calibration and the new row together, which must be exchangeable.

    Parameters
    ----------
    estimator : classifier
        Any classifier with `predict_proba`. `fit` fits a clone of it.
    level : float, default=0.9
        The probability that a set contains the right class.
    conformity_score : {"aps", "raps", "lac"}, default="aps"
        What is calibrated. "lac" takes the classes above one probability: the smallest sets on average, some of them
        empty. "aps" adds classes, the most probable first, up to one sum of probabilities: sets are larger where rows
        are hard. "raps" is the same with a penalty for sets of many classes.
    allow_empty : bool, default=False
        Whether a set may be empty. Otherwise, the most probable class is always in it, which can only raise the
        coverage.
    penalty : float, default=0.01
        What every class beyond `free_rank` adds to the score "raps".
    free_rank : int, default=5
        How many of the most probable classes "raps" does not penalise.
    calibration_size : float or int, default=0.25
        The part of the rows, or their number, that `fit` holds back to calibrate.
    random_state : int, RandomState instance or None, default=None
        Decides which rows these are, and how the scores break ties.

    Attributes
    ----------
    estimator_ : classifier
        The fitted estimator.
    classes_ : ndarray of shape (n_classes,)
        The columns of a set.
    scores_ : ndarray of shape (n_calibration,)
        The scores of the right classes at the rows of calibration.
    threshold_ : float
        A class is in the set if its score is at most this: the ceil((n + 1) level)-th smallest of `scores_`, or
        infinity.
    tie_seed_ : int
        Breaks the ties.

    References
    ----------
    Romano, Sesia, Candes (2020). Classification with valid and adaptive coverage. NeurIPS.
    Angelopoulos, Bates, Jordan, Malik (2021). Uncertainty sets for image classifiers using conformal prediction. ICLR.
    """

    estimator: Any
    _: KW_ONLY
    level: float = 0.9
    conformity_score: str = "aps"
    allow_empty: bool = False
    penalty: float = 0.01
    free_rank: int = 5
    calibration_size: float | int = 0.25
    random_state: int | np.random.RandomState | None = None

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities of the fitted estimator, [n_samples, n_classes]."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def predict_set(self, X: Any) -> np.ndarray:
        """Return whether each class is in the set of each row.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)

        Returns
        -------
        ndarray of bool, of shape (n_samples, n_classes), in the order of `classes_`
        """
        probabilities = np.asarray(self.predict_proba(X), np.float64)
        sets = self._score(self.tie_seed_)(probabilities) <= self.threshold_
        if not self.allow_empty:
            sets[np.arange(len(sets)), np.argmax(probabilities, axis=1)] = True
        return sets

    def _check_estimator_and_score(self) -> None:
        self._score(0).check()
        if not hasattr(self.estimator, "predict_proba"):
            name = type(self.estimator).__name__
            raise TypeError(f"estimator: expected a classifier with predict_proba; {name} has none.")

    def _score(self, seed: int) -> ClassScore:
        return ClassScore(self.conformity_score, self.penalty, self.free_rank, seed)

    def _calibrate(self, model: Any, X: Any, y: Any, random: np.random.RandomState) -> Self:
        seed = int(random.randint(2**31 - 1))
        column = column_of(model.classes_, column_or_1d(y))
        all_scores = self._score(seed)(np.asarray(model.predict_proba(X), np.float64))
        self._keep(model, all_scores[np.arange(len(column)), column], "All sets contain every class")
        self.classes_, self.tie_seed_ = model.classes_, seed
        return self
