"""What every classifier shares: labels in, class probabilities out."""

import os
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from metaprior.estimators.base import Estimator
from metaprior.io.checkpoints import checkpoint_config
from metaprior.likelihoods import Bernoulli, Categorical, Likelihood
from metaprior.predictive import Predictive
from metaprior.predictive.draws import FunctionDraws
from metaprior.predictive.mixture import predictive_of


class ClassifierPart(ClassifierMixin, Estimator):
    """Two classes are told apart by one function (Bernoulli), more by one a class (categorical)."""

    classes_: np.ndarray

    def fit(self, X: Any, y: Any, *, checkpoint: str | os.PathLike | None = None, every: int = 1000) -> Self:
        """Fit the posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels: numbers or strings.

        checkpoint : str or path, default=None
            A folder to keep the run in: where it was killed, the same call goes on and ends with the same bits.
        every : int, default=1000
            Steps between two checkpoints, rounded up to hundreds.

        Returns
        -------
        self
        """
        place = checkpoint_config(checkpoint, every)
        self._fit(*self._taken(X, y), place)
        return self

    def _taken(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, Likelihood, int]:
        """Check the data; return the arguments of `_fit`."""
        X, y = self._checked(X, y)
        check_classification_targets(y)
        classes, labels = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__}: expected at least two classes; y has one class, {classes.tolist()[0]!r}."
            )
        if self._going_on() and not np.array_equal(classes, self.classes_):
            raise ValueError(f"warm_start: expected the classes of the last fit, {self.classes_}; got {classes}.")
        self.classes_ = classes
        likelihood: Likelihood = Bernoulli() if len(classes) == 2 else Categorical()
        return X, labels[:, None].astype(np.float64), likelihood, 1 if len(classes) == 2 else len(classes)

    def _predictive(self, draws: FunctionDraws) -> Predictive:
        return predictive_of(draws, np.zeros(1), np.ones(1), flat=True)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities, [n_samples, n_classes], in the order of `classes_`."""
        return self.predict_distribution(X).probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of every row."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
