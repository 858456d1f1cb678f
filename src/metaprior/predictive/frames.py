"""Predictive distributions as tables: `Predictive.to_frame`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior.extras import imported

if TYPE_CHECKING:
    import pandas as pd

    from metaprior.predictive.base import Predictive


def to_frame(
    predicted: "Predictive", levels: Sequence[float], index: Any, targets: Sequence[str] | None
) -> "pd.DataFrame":
    """Return a table with one row per row; see `Predictive.to_frame`."""
    pandas = imported("pandas", part="to_frame", extra="compare")
    columns = _of_classes(predicted) if predicted.is_classification else _of_numbers(predicted, levels)
    if index is None:
        index = predicted.index
    elif len(index) != len(predicted):
        raise ValueError(f"to_frame: expected an index of {len(predicted)} rows; got one of {len(index)}.")
    is_flat = next(iter(columns.values())).ndim == 1
    if is_flat:
        if targets is not None:
            raise ValueError(f"to_frame: expected no names of targets, as there is one; got {targets!r}.")
        return pandas.DataFrame(columns, index=index)
    names = _target_names(targets, next(iter(columns.values())).shape[1])
    named = {(name, what): values[:, k] for k, name in enumerate(names) for what, values in columns.items()}
    frame = pandas.DataFrame(named, index=index)
    frame.columns = frame.columns.set_names(["target", None])
    return frame


def _of_numbers(predicted: "Predictive", levels: Sequence[float]) -> dict[str, np.ndarray]:
    quantiles: Any = predicted.quantile(np.asarray(levels, np.float64)) if len(levels) else []
    return {
        "mean": predicted.mean,
        "std": predicted.std,
        "epistemic_std": np.sqrt(predicted.epistemic_variance),
        "aleatoric_std": np.sqrt(predicted.aleatoric_variance),
        **{f"q{level:g}": values for level, values in zip(levels, quantiles, strict=True)},
    }


def _of_classes(predicted: "Predictive") -> dict[str, np.ndarray]:
    probabilities, classes = predicted.probabilities, predicted.classes
    return {
        "class": classes[np.argmax(probabilities, axis=1)],
        **{f"p_{label}": probabilities[:, number] for number, label in enumerate(classes.tolist())},
        "entropy": predicted.entropy,
        "mutual_information": predicted.mutual_information,
    }


def _target_names(targets: Sequence[str] | None, num_targets: int) -> list[Any]:
    if targets is None:
        return list(range(num_targets))
    if len(targets) != num_targets:
        raise ValueError(f"to_frame: expected {num_targets} names of targets; got {targets!r}.")
    return list(targets)
