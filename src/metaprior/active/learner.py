"""The learner: one estimator, fitted again and again to data that grow by a few rows.

Estimators of this library that can go on from their last fit do so, in the part of the steps that the end of a run
takes. The units of inputs and targets and the inducing codes stay those of the last fresh fit, so a fit is fresh again
where these no longer suit the data. Other estimators are cloned and fitted afresh: what `warm_start` means elsewhere
varies (a forest would add no tree for the new rows).
"""

import time
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from metaprior.answers import answer_of, own_answer
from metaprior.estimators.base import WARM_BEGINS, Estimator
from metaprior.estimators.checks import is_whole, standard_units
from metaprior.metrics import Answers, accuracy, rmse
from metaprior.saving import named_class

#: A fit is fresh once the rows have grown by this factor since the last fresh one, ...
GROWTH = 2
#: ... or a standard deviation has changed by this factor, or a mean by this many standard deviations.
MOVED = 1.5


class Learner:
    """An estimator, its last fit, and how many rows its last fresh fit had.

    Parameters
    ----------
    estimator : estimator
        It is cloned and stays as it is.
    seed : int
        What its `random_state` becomes, and that of its parts, where they are not whole numbers.
    warm_start : bool
        Whether to go on from the last fit where that can be done.
    warm_iter : int or None
        Steps of a fit that goes on; None: the part of `max_iter` that the recipe's end takes.
    """

    def __init__(self, estimator: Any, seed: int, *, warm_start: bool, warm_iter: int | None) -> None:
        self.answer = answer_of("estimator", estimator)
        self.has_draws = self.answer is own_answer
        self.estimator, self.classifies = seeded(clone(estimator), seed), is_classifier(estimator)
        self.can_go_on = warm_start and isinstance(estimator, Estimator) and "warm_start" in estimator.get_params()
        self.warm_iter = warm_iter
        self.model: Any = None
        self.num_rows = self.num_fresh = 0

    def predictive(self, X: np.ndarray) -> Answers:
        """Return what the last fit says of rows."""
        return self.answer(self.model, X)

    def fit(self, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
        """Fit to all rows so far, old ones first; return what is worth knowing of the fit."""
        fresh = self._must_be_fresh(X, y)
        started = time.perf_counter()
        if fresh:
            self.model = clone(self.estimator).fit(X, y)
            self.num_fresh = len(X)
        else:
            self._go_on(X, y)
        self.num_rows = len(X)
        return {"num_rows": len(X), "fresh": fresh, "seconds": time.perf_counter() - started}

    def _go_on(self, X: np.ndarray, y: np.ndarray) -> None:
        usual = {name: getattr(self.model, name) for name in ("warm_start", "max_iter")}
        steps = self.warm_iter or max(1, round((1 - WARM_BEGINS) * usual["max_iter"]))
        self.model.set_params(warm_start=True, max_iter=steps)
        try:
            self.model.fit(X, y)
        finally:
            self.model.set_params(**usual)

    def _must_be_fresh(self, X: np.ndarray, y: np.ndarray) -> bool:
        if self.model is None or not self.can_go_on or len(X) >= GROWTH * self.num_fresh:
            return True
        first = slice(self.num_fresh)
        if self.classifies:
            return len(np.unique(y)) > len(np.unique(y[first])) or _moved(X[first], X)
        return _moved(X[first], X) or _moved(y[first], y)

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


def _moved(before: np.ndarray, now: np.ndarray) -> bool:
    """Return whether standard units have changed by much."""
    (offset, scale), (new_offset, new_scale) = (standard_units(a.reshape(len(a), -1)) for a in (before, now))
    ratio = np.maximum(new_scale / scale, scale / new_scale)
    return bool(np.any(ratio > MOVED) or np.any(np.abs(new_offset - offset) > MOVED * scale))


def seeded(estimator: Any, seed: int) -> Any:
    """Return the estimator with every random state that is not a whole number set to the seed."""
    states = {
        name: seed
        for name, value in estimator.get_params(deep=True).items()
        if name.split("__")[-1] == "random_state" and not is_whole(value)
    }
    return estimator.set_params(**states)


# --- plain forms ------------------------------------------------------------------


def is_ours(estimator: Any) -> bool:
    """Return whether an estimator has a plain form: it is of this library, and not around something else."""
    return isinstance(estimator, Estimator) and type(estimator).__module__.startswith("metaprior.")


def class_name(estimator: Any) -> str:
    """Return the name of an estimator's class, as files have it."""
    return f"{type(estimator).__module__}:{type(estimator).__qualname__}"


def to_plain(estimator: Any, *, fitted: bool = False) -> dict[str, Any]:
    """Return an estimator of this library as parts that can be saved."""
    state = estimator._saved_state() if fitted else {}
    return {"class": class_name(estimator), "params": estimator.get_params(deep=False), "state": state}


def from_plain(plain: dict[str, Any]) -> Any:
    """Return the estimator of its parts."""
    cls: Any = named_class(plain["class"])
    estimator = cls(**plain["params"])
    if plain["state"]:
        estimator._restore(plain["state"])
    return estimator
