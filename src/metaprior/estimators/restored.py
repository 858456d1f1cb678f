"""What a file restores is checked against what a fit would have left: what loads, predicts.

The parameters are checked as `fit` checks them. The units of inputs and targets, the names of the columns and the
classes must have the shapes and ranges that fits give them. Then the prediction of one row is tried, for shapes alone.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior.estimators.checks import is_whole
from metaprior.estimators.frames import check_origins
from metaprior.types import is_array

if TYPE_CHECKING:
    from metaprior.estimators.base import Estimator

#: The range of offsets and scales: their squares are numbers, too.
LEAST_SCALE, MOST_SCALE = 1e-150, 1e150


def check_names(estimator: object, state: dict[str, Any]) -> None:
    """Raise an error if a restored attribute would hide a method or a parameter."""
    hidden = [name for name in state if hasattr(estimator, name) or not name.isidentifier()]
    if hidden:
        raise ValueError(f"{type(estimator).__name__} cannot have fitted attributes with the names {hidden[:3]}")


def check_restored(estimator: "Estimator") -> None:
    """Raise an error unless a restored estimator can predict."""
    method, state = estimator._method(), vars(estimator)
    method.check()
    num_features = state["n_features_in_"]
    if not is_whole(num_features) or num_features < 1:
        raise ValueError(f"n_features_in_: expected a whole number of at least 1; got {num_features!r}")
    check_units("x_offset_", state["x_offset_"], "x_scale_", state["x_scale_"], int(num_features))
    names = state.get("feature_names_in_")
    if names is not None and not (is_array(names) and names.shape == (num_features,) and names.dtype == object):
        raise ValueError(f"feature_names_in_: expected {num_features} texts")
    if "date_origins_" in state:
        check_origins(state["date_origins_"], int(num_features))
    targets = estimator._fitted_targets()
    targets.check_restored()
    method.check_fitted(estimator, int(num_features), targets)


def check_units(name: str, offset: Any, scale_name: str, scale: Any, size: int) -> None:
    """Raise an error unless these are offsets and scales of so many columns."""
    check_numbers(name, offset, (size,), -MOST_SCALE)
    check_numbers(scale_name, scale, (size,), LEAST_SCALE)


def check_numbers(name: str, value: Any, shape: tuple[int, ...], least: float, most: float = MOST_SCALE) -> None:
    """Raise an error unless a value is an array of this shape of floating-point numbers within a range."""
    fits = isinstance(value, np.ndarray) and value.shape == shape and value.dtype.kind == "f"
    if not fits or not np.all((value >= least) & (value <= most)):
        raise ValueError(f"{name}: expected numbers from {least:g} to {most:g} of shape {shape}")
