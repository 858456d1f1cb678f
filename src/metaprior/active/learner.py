"""The learner: one estimator, fitted again and again to data that grow by a few rows, and what its fits say."""

import time
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from metaprior.decisions.warm_start import RefittedModel
from metaprior.estimators.checks import is_whole
from metaprior.metrics import accuracy, rmse
from metaprior.predictive import PredictiveDistribution
from metaprior.predictive.from_sklearn import distribution_predictor_of, predict_own_distribution


class Learner:
    """A model that is fitted again and again, and its answers.

    Parameters
    ----------
    estimator : estimator
        It is cloned and stays as it is.
    seed : int
        What its `random_state` becomes, and that of its parts, where they are not whole numbers.
    warm_start, warm_iter :
        As for `RefittedModel`.
    """

    def __init__(self, estimator: Any, seed: int, *, warm_start: bool, warm_iter: int | None) -> None:
        self.answer = distribution_predictor_of("estimator", estimator)
        self.has_draws = self.answer is predict_own_distribution
        self.classifies = is_classifier(estimator)
        self.refitted = RefittedModel(seeded(clone(estimator), seed), warm_iter, warm_start=warm_start)

    @property
    def model(self) -> Any:
        """The last fit."""
        return self.refitted.fitted

    def predictive(self, X: np.ndarray) -> PredictiveDistribution:
        """Return what the last fit says of rows."""
        return self.answer(self.model, X)

    def fit(self, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
        """Fit to all rows so far, old ones first; return what is worth knowing of the fit."""
        started = time.perf_counter()
        self.refitted.fit(X, y)
        fresh = self.refitted.fresh_rows == len(X)
        return {"num_rows": len(X), "fresh": fresh, "seconds": time.perf_counter() - started}

    def scores(self, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
        """Return RMSE, or accuracy, and NLL of the last fit on rows with known answers."""
        predictive = self.predictive(X)
        if not self.classifies:
            nll = -float(np.mean(predictive.log_prob(y)))
            return {"rmse": rmse(predictive.mean, y.reshape(predictive.mean.shape)), "nll": nll}
        classes = self.model.classes_
        labels = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        seen = classes[labels] == y  # a class that the model has not met has probability 0
        nll = -float(np.mean(predictive.log_prob(labels))) if np.all(seen) else np.inf
        return {"accuracy": accuracy(predictive.probabilities, np.where(seen, labels, -1)), "nll": nll}


def seeded(estimator: Any, seed: int) -> Any:
    """Return the estimator with every random state that is not a whole number set to the seed."""
    states = {
        name: seed
        for name, value in estimator.get_params(deep=True).items()
        if name.split("__")[-1] == "random_state" and not is_whole(value)
    }
    return estimator.set_params(**states)
