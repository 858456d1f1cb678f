"""A model that is fitted again and again while data come in.

Estimators of this library that can go on from their last fit do so, in the part of the steps that the end of a run
takes. The units of inputs and targets and the inducing codes stay those of the last fresh fit, so a fit is fresh again
where these no longer suit the data; a growing number of rows costs a logarithm of it in fresh fits. Other estimators
are cloned and fitted afresh: what `warm_start` means elsewhere varies (a forest would add no tree for the new rows).

What a fit finds depends on the rows, the seed and the fit before alone, so a loop that is read from its file goes on
as if it had never stopped.
"""

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier

from metaprior.estimators.base import Estimator
from metaprior.estimators.checks import standard_units
from metaprior.estimators.method import WARM_BEGINS
from metaprior.io.saving import ONLY_FOR_TRAINING, UnsavableError, named_class

#: A fit is fresh once the rows have grown by this factor since the last fresh one, ...
GROWTH = 2
#: ... or a standard deviation has changed by this factor, or a mean by this many standard deviations.
MOVED = 1.5


class RefittedModel:
    """An estimator and its last fit to data that only grow.

    Parameters
    ----------
    estimator : estimator
        It is cloned and stays as it is.
    warm_iter : int or None, default=None
        Steps of a fit that goes on; None: the part of `max_iter` that the recipe's end takes.
    warm_start : bool, default=True
        Whether to go on from the last fit where that can be done.
    """

    def __init__(self, estimator: Any, warm_iter: int | None = None, *, warm_start: bool = True) -> None:
        self.template, self.warm_iter = clone(estimator), warm_iter
        self.can_go_on = warm_start and isinstance(estimator, Estimator) and "warm_start" in estimator.get_params()
        self.fitted: Any = None
        self.num_rows = self.fresh_rows = 0

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int | None = None) -> Any:
        """Return the estimator fitted to all rows, old ones first; nothing is done where it has seen them all.

        A seed takes the place of its `random_state`, where it has one.
        """
        if self.fitted is not None and len(X) == self.num_rows:
            return self.fitted
        fresh = self.must_be_fresh(X, y)
        model = clone(self.template) if fresh else self.fitted
        if seed is not None and "random_state" in model.get_params(deep=False):
            model.set_params(random_state=seed)
        self.fitted = model.fit(X, y) if fresh else self._gone_on(X, y)
        self.num_rows, self.fresh_rows = len(X), len(X) if fresh else self.fresh_rows
        return self.fitted

    def _gone_on(self, X: np.ndarray, y: np.ndarray) -> Any:
        model = self.fitted
        usual = {name: getattr(model, name) for name in ("warm_start", "max_iter")}
        steps = self.warm_iter or max(1, round((1 - WARM_BEGINS) * usual["max_iter"]))
        model.set_params(warm_start=True, max_iter=steps)
        try:
            return model.fit(X, y)
        finally:
            model.set_params(**usual)

    def must_be_fresh(self, X: np.ndarray, y: np.ndarray) -> bool:
        """Return whether the last fit is no start for these rows."""
        if self.fitted is None or not self.can_go_on or len(X) >= GROWTH * self.fresh_rows:
            return True
        first = slice(self.fresh_rows)
        if is_classifier(self.template):
            return len(np.unique(y)) > len(np.unique(y[first])) or _moved(X[first], X)
        return _moved(X[first], X) or _moved(y[first], y)

    def plain(self) -> dict[str, Any]:
        """Return what `restored` needs, in parts that can be saved; of a foreign estimator its name alone."""
        content = {"num_rows": self.num_rows, "fresh_rows": self.fresh_rows, "warm_iter": self.warm_iter}
        return {
            **content,
            "warm_start": self.can_go_on,
            "template": _described(self.template),
            "fitted": None if self.fitted is None else _described(self.fitted),
        }

    @classmethod
    def restored(cls, content: dict[str, Any], estimator: Any = None) -> "RefittedModel":
        """Return the model of a file; an estimator of another library must be given again, and is fitted anew."""
        saved = content["template"]
        if estimator is None and "params" not in saved:
            raise ValueError(f"load: the file holds no {saved['class']}, which is not of metaprior; give it again.")
        if estimator is not None and class_name(estimator) != saved["class"]:
            raise ValueError(f"load: expected the loop's own model, a {saved['class']}; got {class_name(estimator)}.")
        template = _made(saved) if estimator is None else estimator
        made = cls(template, content["warm_iter"], warm_start=content["warm_start"])
        if content["fitted"] is not None and "params" in content["fitted"]:
            made.fitted = _made(content["fitted"])
            made.num_rows, made.fresh_rows = content["num_rows"], content["fresh_rows"]
        return made


def _moved(before: np.ndarray, now: np.ndarray) -> bool:
    """Return whether standard units have changed by much."""
    (offset, scale), (new_offset, new_scale) = (standard_units(a.reshape(len(a), -1)) for a in (before, now))
    ratio = np.maximum(new_scale / scale, scale / new_scale)
    return bool(np.any(ratio > MOVED) or np.any(np.abs(new_offset - offset) > MOVED * scale))


# --- plain forms ------------------------------------------------------------------


def class_name(estimator: Any) -> str:
    """Return the name of an estimator's class, as files have it."""
    return f"{type(estimator).__module__}:{type(estimator).__qualname__}"


def _described(estimator: Any) -> dict[str, Any]:
    """Return class, parameters and fit of an estimator; of one of another library, or around one, the class alone."""
    name = class_name(estimator)
    if not (isinstance(estimator, Estimator) and name.startswith("metaprior.")):
        return {"class": name}
    params = estimator.get_params(deep=False)
    for only in ONLY_FOR_TRAINING:
        if params.get(only) is not None:
            raise UnsavableError(f"{only}: a loop that is kept in a file needs the default; got {params[only]!r}.")
    is_fitted = vars(estimator).keys() - params.keys()
    return {"class": name, "params": params, "fit": estimator._saved_state() if is_fitted else None}


def _made(content: dict[str, Any]) -> Any:
    """Return the estimator that was described."""
    cls: Any = named_class(content["class"])
    estimator = cls(**content["params"])
    if content["fit"] is not None:
        estimator._restore(content["fit"])
    return estimator
