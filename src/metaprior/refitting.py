"""A model that is fitted again and again while data come in, and the file of a loop that uses it.

A fit is cold (from the start, in new units, with all steps) when the rows have doubled since the last cold one, and
warm (on from the last fit, with few steps) in between: a growing number of rows costs a logarithm of it in cold fits.
What a fit finds depends on the rows, the seed and the fit before alone, so a loop that is read from its file goes on
as if it had never stopped. The file is one of `metaprior.saving`: safetensors and JSON, written atomically.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from metaprior.estimators.base import Estimator
from metaprior.saving import ONLY_FOR_TRAINING, UnsavableError, load, named_class, save

if TYPE_CHECKING:
    import pandas as pd

#: A cold fit has this many times the rows of the cold fit before.
COLD_GROWTH = 2


class RefittedModel:
    """An estimator and its last fit to data that only grow.

    Parameters
    ----------
    estimator : estimator
        It is cloned and stays as it is. Estimators without `warm_start` are fitted cold every time.
    warm_iter : int or None
        Steps of a warm fit; None: those of a cold one.
    """

    def __init__(self, estimator: Any, warm_iter: int | None = None) -> None:
        self.template, self.warm_iter = clone(estimator), warm_iter
        self.fitted: Any = None
        self.num_rows = self.cold_rows = 0

    def fit(self, X: np.ndarray, y: np.ndarray, seed: int) -> Any:
        """Return the estimator fitted to the rows; nothing is done where it has seen them all."""
        if self.fitted is not None and len(X) == self.num_rows:
            return self.fitted
        known = self.template.get_params(deep=False)
        goes_on = "warm_start" in known and self.fitted is not None and len(X) < COLD_GROWTH * self.cold_rows
        model = self.fitted if goes_on else clone(self.template)
        wanted = {"random_state": seed, "warm_start": True}
        if goes_on and self.warm_iter is not None:
            wanted["max_iter"] = self.warm_iter
        model.set_params(**{name: value for name, value in wanted.items() if name in known}).fit(X, y)
        self.fitted, self.num_rows = model, len(X)
        self.cold_rows = self.cold_rows if goes_on else len(X)
        return model

    def plain(self) -> dict[str, Any]:
        """Return what `restored` needs, in parts that can be saved; of a foreign estimator nothing."""
        content = {"num_rows": self.num_rows, "cold_rows": self.cold_rows, "warm_iter": self.warm_iter}
        if not isinstance(self.template, Estimator):
            return {**content, "template": None, "fitted": None}
        return {**content, "template": _described(self.template), "fitted": _described(self.fitted)}

    @classmethod
    def restored(cls, content: dict[str, Any], estimator: Any = None) -> "RefittedModel":
        """Return the model of a file; an estimator of another library must be given again, and is fitted anew."""
        template = _made(content["template"]) if estimator is None else estimator
        if template is None:
            raise ValueError(
                "load: the model of this loop is not of metaprior and is not in the file; give it again, as it was."
            )
        made = cls(template, content["warm_iter"])
        made.fitted = _made(content["fitted"])
        if made.fitted is not None:
            made.num_rows, made.cold_rows = content["num_rows"], content["cold_rows"]
        return made


def _described(estimator: Any) -> dict[str, Any] | None:
    """Return class, parameters and fit of an estimator of this library."""
    if estimator is None:
        return None
    params = estimator.get_params(deep=False)
    for name in ONLY_FOR_TRAINING:
        if params.get(name) is not None:
            raise UnsavableError(f"{name}: a loop that is kept in a file needs the default; got {params[name]!r}.")
    is_fitted = vars(estimator).keys() - params.keys()
    fit = estimator._saved_state() if is_fitted else None
    return {"class_name": f"{type(estimator).__module__}:{type(estimator).__qualname__}", "params": params, "fit": fit}


def _made(content: dict[str, Any] | None) -> Any:
    """Return the estimator that was described."""
    if content is None:
        return None
    cls: Any = named_class(content["class_name"])
    estimator = cls(**content["params"])
    if content["fit"] is not None:
        estimator._restore(content["fit"])
    return estimator


# --- files ---------------------------------------------------------------------------


class LoopRecord:
    """The state of a loop, in the shape of what `metaprior.saving` writes."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.state: dict[str, Any] = {}

    def get_params(self, deep: bool = False) -> dict[str, str]:
        """Return what the record is made with."""
        return {"kind": self.kind}

    def _saved_state(self) -> dict[str, Any]:
        return self.state

    def _restore(self, state: dict[str, Any]) -> None:
        self.state = state


def write_loop(path: str | os.PathLike, kind: str, state: dict[str, Any]) -> None:
    """Write the state of a loop in place of the last one, atomically."""
    record = LoopRecord(kind)
    record._restore(state)
    save(record, path, overwrite=True)


def read_loop(path: str | os.PathLike, kind: str) -> dict[str, Any]:
    """Return the state of a loop; reading runs no code of the file's."""
    record = load(path)
    found = getattr(record, "kind", type(record).__name__)
    if not (isinstance(record, LoopRecord) and found == kind):
        raise ValueError(f"load: expected the file of a loop of '{kind}'; {path} is one of '{found}'.")
    return record.state


def refuse_to_replace(path: str | os.PathLike | None) -> None:
    """Raise where a new loop would be written over a file that is there."""
    if path is not None and Path(path).exists():
        raise FileExistsError(f"path: {path} exists; load it to go on with that loop, or give another name.")


def history_frame(columns: dict[str, Any]) -> "pd.DataFrame":
    """Return the history of a loop as a frame."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('history: the table needs pandas; pip install "metaprior[compare]".') from error
    return pandas.DataFrame(columns)
