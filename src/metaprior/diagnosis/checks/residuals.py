"""Whether structure is left: errors of rows next to each other should have nothing in common.

Each target's PIT is turned into a normal score, and the mean product of the scores of neighbours (Moran's statistic) is
compared with what chance gives: for training rows by shuffling the scores, for held-out rows by targets that the model
itself draws, because there neighbours share the error of an uncertain function.
"""

from collections.abc import Iterable

import numpy as np
from scipy.special import ndtri

from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.subject import Subject

NAME = "residuals"
#: The p-value below which structure is reported, the correlation that it must have, and the least rows.
LEVEL, LEAST_CORRELATION, LEAST_ROWS = 0.01, 0.1, 20
#: Shuffles that chance is known from.
NUM_SHUFFLES = 999


def residuals(subject: Subject) -> Finding | LeftOut:
    """Correlate the errors of neighbours."""
    if subject.is_classification:
        return LeftOut(NAME, "classes have no residuals.")
    if len(subject) < LEAST_ROWS:
        return LeftOut(NAME, f"{len(subject)} rows are too few; give at least {LEAST_ROWS}.")
    found = _correlations(subject, subject.pit)
    worst, correlation = int(np.argmax(found)), float(np.max(found))
    by_chance = np.array([np.max(_correlations(subject, own)) for own in _chance(subject)])
    p_value = float((1 + np.sum(by_chance >= correlation)) / (1 + len(by_chance)))
    which = "" if len(found) == 1 else f" of target {worst}"
    numbers = {"correlation": correlation, "p_value": p_value}
    told = f"correlation of neighbours {correlation:.2f}, p = {p_value:.2g}"
    if p_value >= LEVEL or correlation < LEAST_CORRELATION:
        return Finding(NAME, "ok", f"Errors of neighbouring rows{which} have nothing in common ({told}).", "", numbers)
    sentence = f"Errors of neighbouring rows{which} are alike ({told}): the function misses something."
    return Finding(NAME, "warning", sentence, _advice(subject), numbers)


def _correlations(subject: Subject, pit: np.ndarray) -> np.ndarray:
    """Return the correlation of neighbours for every output of transforms [N, outputs]."""
    return np.array([neighbour_correlation(column, subject.neighbours) for column in pit.T])


def _chance(subject: Subject) -> Iterable[np.ndarray]:
    """Return transforms without structure: those that the model expects, or shuffled rows."""
    if subject.replicate_pits is not None:
        return subject.replicate_pits
    rng = np.random.default_rng(subject.seed)
    return (rng.permutation(subject.pit) for _ in range(NUM_SHUFFLES))


def neighbour_correlation(pit: np.ndarray, neighbours: np.ndarray) -> float:
    """Return the mean product of the normal scores of rows and their neighbours, in variances of the scores."""
    scores = ndtri(np.clip(pit, 1e-6, 1 - 1e-6))
    scores = scores - scores.mean()
    return float(np.mean(scores[:, None] * scores[neighbours]) / max(np.mean(scores**2), 1e-12))


def _advice(subject: Subject) -> str:
    if not subject.is_metagp:
        return "Try another kernel, more units, or more steps."
    kernel = subject.estimator.input_kernel
    if kernel is None:
        return "Take input_kernel='rbf' (or a Periodic kernel if something repeats), or more units."
    return (
        f"Try another input_kernel ({kernel!r} now): a period or lengthscale that is not held fixed, a shorter one, a "
        "Matern kernel for rough functions, or a sum of kernels. n_restarts=3 tries other starts."
    )
