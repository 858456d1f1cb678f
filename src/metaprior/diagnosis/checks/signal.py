"""Whether the noise is all of it: the part of the variance of the targets that the function explains."""

import numpy as np

from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.subject import Subject, columns

NAME = "signal"
#: The explained part of the variance below which a function is as good as none, and that below which it is so if it
#: varies less over the rows than it is uncertain at one of them.
LEAST_SHARE, LITTLE_SHARE = 0.03, 0.2


def signal(subject: Subject) -> Finding | LeftOut:
    """Compare the variance of the mean over the rows with that of the noise; for classes, of the probabilities."""
    mean, noise = columns(subject.predictive.mean), columns(_noise(subject))
    if len(mean) < 2:
        return LeftOut(NAME, "one row shows no variance over rows.")
    spread, level = np.var(mean, axis=0), np.mean(noise, axis=0)
    if subject.is_classification:
        # the classes of a row are one target
        spread, level = spread.sum(keepdims=True), level.sum(keepdims=True)
    share = spread / np.maximum(spread + level, np.finfo(np.float64).tiny)
    worst, where = float(np.min(share)), _which(share)
    ratio = float(np.min(spread / np.maximum(level, np.finfo(np.float64).tiny)))
    certainty = _certainty(subject, spread, int(np.argmin(share)))
    numbers = {"explained_share": worst, "signal_to_noise": ratio, "variance_over_uncertainty": certainty}
    if worst < LEAST_SHARE or (worst < LITTLE_SHARE and certainty < 1):
        sentence = (
            f"The noise is all of it{where}: over these rows the function explains {worst:.1%} of the variance of "
            f"{'the classes' if subject.is_classification else 'y'}."
        )
        advice = (
            "If you expect a signal, take another input_kernel (with the period or lengthscale that you expect), "
            "n_restarts=3 for other starts, or noise= if you know its level. If not, X says nothing about y."
        )
        return Finding(NAME, "warning", sentence, advice, numbers)
    sentence = f"The function explains {worst:.0%} of the variance{where} (signal to noise {ratio:.2g})."
    return Finding(NAME, "ok", sentence, "", numbers)


def _noise(subject: Subject) -> np.ndarray:
    """Return the variance of y given the function, or all of the variance where the two are not told apart."""
    predictive = subject.predictive
    return np.asarray(getattr(predictive, "aleatoric_variance", predictive.variance))


def _certainty(subject: Subject, spread: np.ndarray, k: int) -> float:
    """Return the variance of the mean over the rows, in mean variances of the function at one of them; inf if unknown.

    A function that varies less than it is uncertain cannot be told from a constant.
    """
    variance = getattr(subject.predictive, "epistemic_variance", None)
    if variance is None:
        return np.inf
    uncertain = np.mean(columns(np.asarray(variance)), axis=0)
    uncertain = uncertain.sum(keepdims=True) if subject.is_classification else uncertain
    return float(spread[k] / max(uncertain[k], np.finfo(np.float64).tiny))


def _which(share: np.ndarray) -> str:
    return "" if len(share) == 1 else f" (of target {int(np.argmin(share))}, the least of {len(share)})"
