"""The model of a loop: one estimator that is refitted as data come in.

Estimators of this library that support it continue from their last fit, with fewer steps than a fresh fit takes. Such a
warm fit keeps the units and the inducing codes of the last fresh fit. When these no longer suit the data, the next fit
is fresh; growth alone costs a logarithmic number of fresh fits. Other estimators are always cloned and fitted afresh,
because `warm_start` means different things elsewhere (a forest would add no tree for the new rows).

A fit depends only on the rows, the seed and the fit before it, so a loop that is loaded from its file continues as if
it had never stopped. A model never changes: a new fit is a new model, which the loop adopts once it is saved.
"""

import copy
import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from metaprior.decisions.content import checked_count, checked_fields, expect_content
from metaprior.estimators.base import Estimator
from metaprior.estimators.checks import expect, is_whole, standard_units
from metaprior.estimators.method import WARM_BEGINS
from metaprior.io.plain import ONLY_FOR_TRAINING, UnsavableError
from metaprior.io.renamed import present_name
from metaprior.metrics import accuracy, rmse
from metaprior.predictive import PredictiveDistribution
from metaprior.predictive.from_sklearn import distribution_predictor_of, predict_own_distribution

#: A fit is fresh if the number of rows has grown by this factor since the last fresh one, ...
GROWTH = 2
#: ... or if a standard deviation has changed by this factor, or a mean by this many standard deviations.
MOVED = 1.5


class FitRecord(NamedTuple):
    """The number of rows of a fit, whether it was fresh, and how long it took."""

    n_rows: int
    fresh: bool
    seconds: float


class WarmStartedModel:
    """An estimator and its last fit, for data that only grow. It never changes.

    Parameters
    ----------
    estimator : estimator
        It is cloned and never changed.
    warm_iter : int or None, default=None
        Number of steps of a fit that continues from the last one. None means 0.3 of the estimator's `max_iter`.
    warm_start : bool, default=True
        Whether to continue from the last fit if the estimator supports that.

    Attributes
    ----------
    fitted : estimator or None
        The last fit.
    n_rows, fresh_rows : int
        The numbers of rows of the last fit and of the last fresh one.
    last_fit : FitRecord or None
        A record of the last fit, if it was not read from a file.
    """

    def __init__(self, estimator: Any, warm_iter: int | None = None, *, warm_start: bool = True) -> None:
        expect_warm_iter(warm_iter)
        self.template, self.warm_iter = clone(estimator), warm_iter
        self.can_go_on = warm_start and isinstance(estimator, Estimator) and "warm_start" in estimator.get_params()
        self.fitted: Any = None
        self.n_rows = self.fresh_rows = 0
        self.last_fit: FitRecord | None = None

    @property
    def classifies(self) -> bool:
        """Whether the targets are classes."""
        return is_classifier(self.template)

    @property
    def has_draws(self) -> bool:
        """Whether it predicts by function draws. Raises an error if its predictions have no uncertainty."""
        return distribution_predictor_of("estimator", self.template) is predict_own_distribution

    # --- fits -------------------------------------------------------------------------

    def refitted(self, X: np.ndarray, y: np.ndarray, seed: int) -> "WarmStartedModel":
        """Return a model fitted to all rows, which start with those of the last fit. This one stays as it is.

        If there are no new rows, this one is returned. `seed` replaces every `random_state` of the estimator and its
        parts that is not a whole number.
        """
        if self.fitted is not None and len(X) == self.n_rows:
            return self
        started, fresh = time.perf_counter(), self.must_be_fresh(X, y)
        estimator = clone(self.template) if fresh else copy.copy(self.fitted)
        estimator.set_params(**dict.fromkeys(self._free_seeds(), seed))
        made = copy.copy(self)
        made.fitted = estimator.fit(X, y) if fresh else self._gone_on(estimator, X, y)
        made.n_rows, made.fresh_rows = len(X), len(X) if fresh else self.fresh_rows
        made.last_fit = FitRecord(len(X), fresh, time.perf_counter() - started)
        return made

    def _free_seeds(self) -> list[str]:
        """Return the names of the random states that the loop sets."""
        params = self.template.get_params(deep=True).items()
        return [name for name, value in params if name.split("__")[-1] == "random_state" and not is_whole(value)]

    def _gone_on(self, estimator: Any, X: np.ndarray, y: np.ndarray) -> Any:
        """Continue a fit, and return the estimator with the parameters that it had."""
        usual = {"warm_start": estimator.warm_start, "max_iter": estimator.max_iter}
        steps = self.warm_iter or max(1, round((1 - WARM_BEGINS) * estimator.max_iter))
        return estimator.set_params(warm_start=True, max_iter=steps).fit(X, y).set_params(**usual)

    def must_be_fresh(self, X: np.ndarray, y: np.ndarray) -> bool:
        """Return whether these rows need a fresh fit."""
        if self.fitted is None or not self.can_go_on or len(X) >= GROWTH * self.fresh_rows:
            return True
        first = slice(self.fresh_rows)
        if self.classifies:
            return len(np.unique(y)) > len(np.unique(y[first])) or _moved(X[first], X)
        return _moved(X[first], X) or _moved(y[first], y)

    # --- predictions of the last fit ----------------------------------------------------

    def predictive(self, X: np.ndarray) -> PredictiveDistribution:
        """Return the predictive distribution at rows."""
        return distribution_predictor_of("estimator", self.template)(self.fitted, X)

    def scores(self, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
        """Return RMSE, or accuracy, and NLL on rows with known targets."""
        predictive = self.predictive(X)
        if not self.classifies:
            nll = -float(np.mean(predictive.log_prob(y)))
            return {"rmse": rmse(predictive.mean, y.reshape(predictive.mean.shape)), "nll": nll}
        classes = self.fitted.classes_
        labels = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
        seen = classes[labels] == y  # a class that the model has not seen has probability 0
        nll = -float(np.mean(predictive.log_prob(y))) if np.all(seen) else np.inf
        return {"accuracy": accuracy(predictive.probabilities, np.where(seen, labels, -1)), "nll": nll}

    # --- files --------------------------------------------------------------------------

    def content(self) -> dict[str, Any]:
        """Return what `restored` needs. An estimator from another library is saved by its name alone."""
        return {
            "class_name": class_name(self.template),
            "template": _savable(self.template),
            "fitted": None if self.fitted is None else _savable(self.fitted),
            "n_rows": self.n_rows,
            "fresh_rows": self.fresh_rows,
            "warm_iter": self.warm_iter,
            "warm_start": self.can_go_on,
        }

    @classmethod
    def restored(cls, content: Any, estimator: Any = None) -> "WarmStartedModel":
        """Return the model of a file. An estimator from another library must be given again, and is refitted."""
        _expect_sound(checked_fields("model", content, _FIELDS))
        template, name = content["template"], content["class_name"]
        if estimator is None and template is None:
            raise ValueError(f"the file does not contain {name}, which is not of metaprior; pass estimator=...")
        if estimator is not None and class_name(estimator) != present_name(name):
            raise ValueError(f"expected the loop's own estimator, a {name}; got {class_name(estimator)}.")
        made = cls(template if estimator is None else estimator, content["warm_iter"], warm_start=content["warm_start"])
        if content["fitted"] is not None:
            made.fitted, made.n_rows, made.fresh_rows = content["fitted"], content["n_rows"], content["fresh_rows"]
        return made


#: What a file contains of a model.
_FIELDS = ("class_name", "template", "fitted", "n_rows", "fresh_rows", "warm_iter", "warm_start")


def _expect_sound(content: dict[str, Any]) -> None:
    """Raise an error unless the parts of a model in a file are of the right types and suit each other."""
    name, template, fitted = (content[field] for field in ("class_name", "template", "fitted"))
    expect_content("model: class_name", name, "the name of a class", isinstance(name, str))
    expect_content("model: warm_start", content["warm_start"], "True or False", isinstance(content["warm_start"], bool))
    n_rows = checked_count("model: n_rows", content["n_rows"])
    checked_count("model: fresh_rows", content["fresh_rows"], 0 if fitted is None else 1, n_rows)
    if template is not None:
        same = isinstance(template, Estimator) and class_name(template) == present_name(name)
        expect_content("model: template", template, f"None or a {name}", same)
    if fitted is not None:
        expect_content("model: fitted", fitted, f"None or a {name}", type(fitted) is type(template))
        check_is_fitted(fitted)


def _moved(before: np.ndarray, now: np.ndarray) -> bool:
    """Return whether the means or standard deviations of the columns have changed by too much."""
    (offset, scale), (new_offset, new_scale) = (standard_units(a.reshape(len(a), -1)) for a in (before, now))
    ratio = np.maximum(new_scale / scale, scale / new_scale)
    return bool(np.any(ratio > MOVED) or np.any(np.abs(new_offset - offset) > MOVED * scale))


def expect_warm_iter(warm_iter: Any) -> None:
    """Raise an error unless it can be the number of steps of a warm fit."""
    steps = warm_iter is None or (is_whole(warm_iter) and warm_iter >= 1)
    expect("warm_iter", warm_iter, "a whole number of at least 1, or None", steps)


def class_name(estimator: Any) -> str:
    """Return the name of an estimator's class, as "module:Class"."""
    return f"{type(estimator).__module__}:{type(estimator).__qualname__}"


def _savable(estimator: Any) -> Any:
    """Return an estimator of this library, or None for one of another library (a pipeline, for instance)."""
    if not (isinstance(estimator, Estimator) and class_name(estimator).startswith("metaprior.")):
        return None
    params = estimator.get_params(deep=False)
    for only in ONLY_FOR_TRAINING:
        if params.get(only) is not None:
            raise UnsavableError(f"{only}: a loop that is saved to a file needs the default; got {params[only]!r}.")
    return estimator
