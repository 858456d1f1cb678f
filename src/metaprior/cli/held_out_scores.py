"""What `metaprior fit --holdout` adds: scores that a person understands, on rows that the scored model has not seen."""

import os
import time
from typing import TYPE_CHECKING, Any

from metaprior.cli.result import counted

if TYPE_CHECKING:
    import numpy as np


def held_out_scores(
    estimator: Any, x: "np.ndarray", y: "np.ndarray", split: "tuple[np.ndarray, np.ndarray]", checkpoint: str | None
) -> dict[str, Any]:
    """Fit a copy of an estimator to the first part of a split, and score its predictions for the second."""
    from sklearn.base import clone

    fitted, held = split
    model, started = clone(estimator), time.perf_counter()
    model.fit(x[fitted], y[fitted], checkpoint=None if checkpoint is None else os.path.join(checkpoint, "holdout"))
    seconds = time.perf_counter() - started
    scored = _scores(model, x[held], y[held])
    return {"rows": len(held), "fitted_rows": len(fitted), "seconds": round(seconds, 3), "scores": scored}


def described_scores(held_out: dict[str, Any], target: str) -> list[tuple[str, str]]:
    """Return rows for people, as a table of two columns."""
    found = held_out["scores"]
    head = (
        f"{counted(held_out['rows'], 'row')}, {held_out['chosen']}; a fit to the other {held_out['fitted_rows']}, in "
        f"{held_out['seconds']:.1f} s, predicts them so:"
    )
    rows = _of_classes(found) if "accuracy" in found else _of_numbers(found, target)
    return [("held out", head), *[(f"  {name}", said) for name, said in rows]]


def _of_numbers(found: dict[str, Any], target: str) -> list[tuple[str, str]]:
    explained = "unknown, as all values are equal" if found["r2"] is None else f"{found['r2']:.3f}"
    return [
        ("RMSE", f"{found['rmse']:.4g}, in units of {target!r}, whose standard deviation there is {found['std']:.4g}"),
        ("R2", f"{explained}, the share of the variance that the predictions explain (1 is best)"),
        ("coverage", f"{100 * found['coverage_95']:.1f} % of the values lie inside their 95 % interval"),
        ("NLL", f"{found['nll']:.4g} nats per row (smaller is better)"),
    ]


def _of_classes(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("accuracy", f"{found['accuracy']:.3f}; always saying the most frequent class: {found['most_frequent']:.3f}"),
        ("NLL", f"{found['nll']:.4g} nats per row (smaller is better)"),
        ("ECE", f"{found['calibration_error']:.3f}, the mean gap between confidence and accuracy (0 is best)"),
    ]


def _scores(model: Any, x: "np.ndarray", y: "np.ndarray") -> dict[str, float | None]:
    """Return the scores of `metrics.scores`, and what they can be compared with."""
    import numpy as np

    from metaprior.metrics import scores

    predictive = model.predict_distribution(x)
    if predictive.is_classification:
        _, counts = np.unique(y, return_counts=True)
        return {**scores(predictive, y), "most_frequent": float(np.max(counts) / len(y))}
    found, squared = scores(predictive, y), float(np.var(y))
    explained = 1 - found["rmse"] ** 2 / squared if squared else None
    return {**found, "r2": explained, "std": squared**0.5}
