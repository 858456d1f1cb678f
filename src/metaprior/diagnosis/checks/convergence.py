"""Whether training ended because the bound was flat, or because its steps ran out."""

from typing import Any

import numpy as np

from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.subject import Subject
from metaprior.inference import Settling

NAME = "convergence"


def convergence(subject: Subject) -> Finding | LeftOut:
    """Look at the end of the history of the bound."""
    fitted = vars(subject.estimator)
    history = fitted.get("elbo_history_")
    if history is None or len(history) < 2:
        return LeftOut(NAME, f"{type(subject.estimator).__name__} keeps no history of a bound.")
    num_steps, rise = len(history), last_rise(np.asarray(history, np.float64))
    limit = _flat_rise(subject, fitted)
    numbers = {"n_iter": float(num_steps), "last_rise": rise, "flat_rise": limit}
    if fitted.get("converged_", False):
        return Finding(NAME, "ok", f"Training ended after {num_steps} steps because the bound was flat.", "", numbers)
    ended = f"Training took all its {num_steps} steps"
    if rise <= limit:
        sentence = f"{ended}; over the last fifth of them the bound rose by {rise:.2g} nats, which is little."
        return Finding(NAME, "ok", sentence, "", numbers)
    sentence = f"{ended}, and the bound still rose by {rise:.3g} nats over the last fifth of them."
    return Finding(NAME, "warning", sentence, f"Raise max_iter ({_asked(fitted, num_steps)} now).", numbers)


def last_rise(history: np.ndarray) -> float:
    """Return by how much the mean of the last tenth of the steps lies above that of the tenth before the last fifth."""
    tenth = max(1, len(history) // 10)
    before = history[-3 * tenth : -2 * tenth] if len(history) >= 3 * tenth else history[:1]
    return float(np.mean(history[-tenth:]) - np.mean(before))


def _flat_rise(subject: Subject, fitted: dict[str, Any]) -> float:
    """Return the rise that counts as none: what ends the fits of a MetaGP, and twice the error of the means."""
    training, settling = subject.training, Settling()
    num_rows = len(subject) if training is None else len(training.x)
    history = np.asarray(fitted["elbo_history_"], np.float64)
    tenth = max(1, len(history) // 10)
    error = float(np.std(history[-tenth:])) * np.sqrt(2 / tenth)
    return max(settling.patience * max(settling.least, settling.per_row * num_rows), 2 * error)


def _asked(fitted: dict[str, Any], num_steps: int) -> int:
    return int(fitted.get("max_iter", num_steps))
