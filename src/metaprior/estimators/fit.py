"""A fit on one page: validate, standardise, build and train, store.

Nothing of the estimator changes before training has ended well, so an interrupted or refused fit leaves the old one.
"""

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_random_state, validate_data

from metaprior.estimators.checks import in_units, refuse_lost_digits, standard_units
from metaprior.estimators.frames import columns_without_numbers, known_dates, learned_dates
from metaprior.estimators.method import Method, Problem
from metaprior.estimators.rows import counted_rows
from metaprior.model import Model

if TYPE_CHECKING:
    from metaprior.estimators.base import Estimator


#: Attributes that some fits leave and others do not.
NOT_OF_EVERY_FIT = ("feature_names_in_", "date_origins_")


@dataclass(frozen=True)
class InputScaling:
    """The offset and the scale of every input column."""

    offset: np.ndarray
    scale: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, kind: str, weight: np.ndarray | None = None) -> "InputScaling":
        """Standardise every column by itself ("per_column"), or all by the values of all columns ("joint")."""
        if kind == "per_column":
            return cls(*standard_units(x, weight=weight))
        each = None if weight is None else np.repeat(weight, x.shape[1])
        offset, scale = standard_units(x.reshape(-1, 1), weight=each)
        return cls(np.repeat(offset, x.shape[1]), np.repeat(scale, x.shape[1]))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return standardised inputs; refuse rows that are too far away."""
        return in_units(x, self.offset, self.scale, "X")

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that the scaling leaves on the estimator."""
        return {"x_offset_": self.offset, "x_scale_": self.scale}


class PreparedFit(NamedTuple):
    """All that a fit needs, before it: nothing of the estimator has changed yet."""

    method: Method
    problem: Problem
    seed: int
    scaling: InputScaling
    #: scikit-learn's own attributes: the number and the names of the columns
    columns: dict[str, Any]


def method_of(estimator: "Estimator") -> Method:
    """Return how an estimator's model is fitted and asked, by its parameters of now."""
    return estimator._method()


def prepare_fit(
    estimator: "Estimator", X: Any, y: Any, sample_weight: Any = None, *, joins_equal_rows: bool = True
) -> PreparedFit:
    """Check parameters and data; join equal rows, unless that is not wanted; standardise inputs and targets."""
    method, last = estimator._method(), estimator._last_model()
    method.check()
    x, y, columns = validate_fit_data(estimator, X, y)
    weight = None
    if joins_equal_rows:
        x, y, weight = counted_rows(x, y, sample_weight)
    targets = estimator._targets_of(y, weight)
    scaling = InputScaling.of(x, method.input_scaling, weight) if last is None else estimator._scaling()
    standardised = targets.standardised(y)
    likelihood = targets.likelihood(x, standardised, method)
    num_functions = targets.num_functions(likelihood)
    if last is not None:
        _check_continued(last, x.shape[1], num_functions)
    units = x, scaling(x), scaling.scale, standardised
    problem = Problem(*units, likelihood, num_functions, targets, last, names=_names(columns), weight=weight)
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    return PreparedFit(method, problem, seed, scaling, columns)


def store_fit(estimator: "Estimator", prepared: PreparedFit, attributes: dict[str, Any]) -> None:
    """Let the estimator have what was fitted, in place of an earlier fit.

    This is one assignment: whatever interrupts it, the estimator has all of the earlier fit or all of this one.
    """
    fitted = {**prepared.columns, **prepared.scaling.attributes(), **prepared.problem.kind.attributes(), **attributes}
    is_new = prepared.problem.last is None
    left_out = {*NOT_OF_EVERY_FIT, "_kernel_search"} if is_new else NOT_OF_EVERY_FIT
    others = {name: value for name, value in vars(estimator).items() if name not in left_out}
    estimator.__dict__ = {**others, **fitted}


def validate_fit_data(estimator: "Estimator", X: Any, y: Any) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return checked inputs, targets, and what scikit-learn would note of the columns on the estimator."""
    noted = copy.copy(estimator)
    X, origins = learned_dates(X)
    x, target = checked(noted, X, y, **estimator._target_checks())
    refuse_lost_digits("X", X, x)
    names = ("n_features_in_", "feature_names_in_")
    columns = {name: vars(noted)[name] for name in names if name in vars(noted)}
    return x, np.asarray(target), columns if origins is None else {**columns, "date_origins_": origins}


def _names(columns: dict[str, Any]) -> tuple[str, ...] | None:
    """Return the names of the columns, if they have names."""
    names = columns.get("feature_names_in_")
    return None if names is None else tuple(map(str, names))


def checked(estimator: "Estimator", X: Any, *target: Any, **kwargs: Any) -> Any:
    """Validate X (at predict) or X and y (at fit) as scikit-learn does; name columns that are not numbers.

    Dates to predict at become days since the first ones of the fit.
    """
    if not target:
        X = known_dates(X, vars(estimator).get("date_origins_"), vars(estimator).get("feature_names_in_"))
    try:
        return validate_data(estimator, X, *target, reset=bool(target), dtype=np.float64, order="C", **kwargs)
    except (ValueError, TypeError) as error:
        columns = columns_without_numbers(X)
        is_other = "could not convert" in str(error) or isinstance(error, TypeError)
        if is_other and columns:
            raise ValueError(
                f"expected numeric columns; {columns} are not: encode them (for instance with scikit-learn's "
                "OneHotEncoder, or with metaprior.tables.TableEncoder) or leave them out. Dates must have a type of "
                "dates: pandas.to_datetime makes it of texts."
            ) from error
        raise


def _check_continued(last: Model, num_features: int, num_functions: int) -> None:
    """Raise where a warm start gets other data than the last fit had."""
    first, end = last.network.weight_layers[0], last.network.weight_layers[-1]
    # the last of a layer's inputs is the bias
    sizes = [("features", len(first.inputs) - 1, num_features), ("targets", len(end.outputs), num_functions)]
    for what, expected, got in sizes:
        if got != expected:
            raise ValueError(f"warm_start: expected {expected} {what}, as in the last fit; got {got}.")
