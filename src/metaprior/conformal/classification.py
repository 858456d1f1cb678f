"""Split conformal prediction for a classifier: sets of classes that contain the right one."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted, check_random_state, column_or_1d

from metaprior.conformal.calibration_rows import split_rows
from metaprior.conformal.class_scores import ClassScore, column_of
from metaprior.conformal.ranks import check_level, coverage_interval, threshold, warn_of_too_few


class ConformalClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
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

    def __init__(
        self,
        estimator: Any,
        *,
        level: float = 0.9,
        conformity_score: str = "aps",
        allow_empty: bool = False,
        penalty: float = 0.01,
        free_rank: int = 5,
        calibration_size: float | int = 0.25,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.level = level
        self.conformity_score = conformity_score
        self.allow_empty = allow_empty
        self.penalty = penalty
        self.free_rank = free_rank
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit a clone of the estimator to most rows, and calibrate it on the others.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        random = self._checked_random_state()
        X_fit, y_fit, X_held, y_held = split_rows(X, y, self.calibration_size, random)
        return self._calibrate(clone(self.estimator).fit(X_fit, y_fit), X_held, y_held, random)

    def calibrate(self, X: Any, y: Any) -> Self:
        """Calibrate the estimator, which has been fitted to other rows, and leave it as it is.

        Parameters
        ----------
        X : array-like or data frame of shape (n_calibration, n_features)
        y : array-like of shape (n_calibration,)

        Returns
        -------
        self
        """
        random = self._checked_random_state()
        check_is_fitted(self.estimator)
        return self._calibrate(self.estimator, X, y, random)

    def predict(self, X: Any) -> np.ndarray:
        """Return the class that the fitted estimator predicts, [n_samples]."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

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

    def coverage_interval(self, probability: float = 0.9) -> tuple[float, float]:
        """Return where the coverage of all future rows lies, given the rows of calibration that there happen to be.

        It holds with `allow_empty=True`; the most probable class can only add to the coverage. See
        `ConformalRegressor.coverage_interval`.
        """
        check_is_fitted(self)
        return coverage_interval(len(self.scores_), self.level, probability)

    def _checked_random_state(self) -> np.random.RandomState:
        check_level(self.level)
        self._score(0).check()
        if not hasattr(self.estimator, "predict_proba"):
            name = type(self.estimator).__name__
            raise TypeError(f"estimator: expected a classifier with predict_proba; {name} has none.")
        return check_random_state(self.random_state)

    def _score(self, seed: int) -> ClassScore:
        return ClassScore(self.conformity_score, self.penalty, self.free_rank, seed)

    def _calibrate(self, model: Any, X: Any, y: Any, random: np.random.RandomState) -> Self:
        seed = int(random.randint(2**31 - 1))
        column = column_of(model.classes_, column_or_1d(y))
        all_scores = self._score(seed)(np.asarray(model.predict_proba(X), np.float64))
        scores = all_scores[np.arange(len(column)), column]
        warn_of_too_few(len(scores), self.level, "All sets contain every class")
        self.estimator_, self.classes_, self.scores_, self.tie_seed_ = model, model.classes_, scores, seed
        self.threshold_ = threshold(scores, self.level)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether it has been calibrated."""
        return hasattr(self, "threshold_")
