"""Batches: rows that are informative together, so that the second does not ask what the first answers.

Both rules add one row at a time: the one whose answer tells most about the function given the answers to the rows
before it, I(y_i; f | y_1, ..., y_b). The sum of these gains is I(y_1, ..., y_b; f), the joint information of the batch.
It is submodular, so the greedy batch has at least 1 - 1/e of the information of the best batch. The function draws show
what rows have in common.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import entr

from metaprior.estimators.renamed import accepts_old_keywords
from metaprior.io.renamed import LOOP_PARAMETERS
from metaprior.predictive import Predictive, PredictiveDistribution
from metaprior.predictive.draws import CHUNK_ROWS

#: The most sets of answers to a batch of classes that are considered: all up to this number, a sample beyond.
N_CONFIGURATIONS = 1024

State = TypeVar("State")


class Choice(NamedTuple):
    """Rows in the order in which they were chosen, and the acquisition value of each."""

    rows: np.ndarray
    values: np.ndarray


def with_draws(predictive: PredictiveDistribution, name: str) -> Predictive:
    """Return the distribution, or raise an error if it does not have at least two function draws."""
    if not isinstance(predictive, Predictive):
        raise TypeError(
            f"{name}: expected a distribution with function draws, as the estimators of this library predict; got "
            f"{type(predictive).__name__}: use 'entropy' or 'variance'."
        )
    if predictive.num_draws < 2:
        raise ValueError(
            f"{name}: expected at least 2 function draws; got {predictive.num_draws}: a model with point weights has "
            "no epistemic uncertainty; use another estimator."
        )
    return predictive


def _greedy(
    n_queries: int, state: State, gains: Callable[[State], np.ndarray], observed: Callable[[State, int], State]
) -> Choice:
    """Choose one row at a time, by its gain given the rows before it."""
    rows: list[int] = []
    values: list[float] = []
    for _ in range(n_queries):
        gain = gains(state)
        if len(rows) == len(gain):
            break
        gain[rows] = -np.inf
        rows.append(int(np.argmax(gain)))
        values.append(float(gain[rows[-1]]))
        state = observed(state, rows[-1])
    return Choice(np.array(rows, int), np.array(values))


# --- targets that have an order ---------------------------------------------------


@accepts_old_keywords(LOOP_PARAMETERS)
def greedy_covariance(predictive: PredictiveDistribution, n_queries: int) -> Choice:
    """Choose rows by the covariance of the function between them, for regression.

    The function's values are treated as jointly Gaussian, with the correlations of the draws and the variances of the
    distribution, and the noise as Gaussian: I(y_i; f | y_B) = log(1 + v_i / noise_i^2) / 2, where v_i is the variance
    of f_i that is left given noisy answers at B. If the noise is the same everywhere, the row with the largest variance
    left is chosen. Outputs are treated as independent, and their gains are added. Cost: draws x rows for every query.

    Parameters
    ----------
    predictive : Predictive
        The prediction of a regressor at the rows to choose from.
    n_queries : int
        How many rows to choose.

    Returns
    -------
    Choice
        Rows and their gains, in nats.
    """
    predictive = with_draws(predictive, "greedy_covariance")
    if predictive.is_classification:
        raise ValueError("greedy_covariance: classes have no covariance; use greedy_classes.")
    noise = _columns(predictive.aleatoric_variance)

    def gains(root: np.ndarray) -> np.ndarray:
        left = np.sum(root**2, axis=0)  # [N, K]
        return 0.5 * np.sum(np.log1p(left / noise), axis=1)

    return _greedy(n_queries, _root(predictive), gains, lambda root, row: _observed(root, row, noise[row]))


def _root(predictive: Predictive) -> np.ndarray:
    """Return R [S, N, K], where R'R has the correlations of the draws and the variances of the distribution."""
    draws = predictive.draws()
    draws = draws.reshape(*draws.shape[:2], -1)
    centred = draws - np.mean(draws, axis=0)
    length = np.sqrt(np.sum(centred**2, axis=0))
    unit = centred / np.where(length > 0, length, 1)
    return unit * np.sqrt(_columns(predictive.epistemic_variance))


def _observed(root: np.ndarray, row: int, noise: np.ndarray) -> np.ndarray:
    """Return the root of R'R - R'r r'R / (r'r + noise), r = R[:, row]: (I - a r r') R, a = (1 - shrink) / r'r."""
    r = root[:, row]  # [S, K]
    variance = np.sum(r**2, axis=0)
    shrink = 1 / np.sqrt(1 + variance / noise)
    a = (1 - shrink) / np.where(variance > 0, variance, 1)
    return root - a * r[:, None] * np.sum(r[:, None] * root, axis=0)


def _columns(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1)


# --- classes ----------------------------------------------------------------------


@accepts_old_keywords(LOOP_PARAMETERS)
def greedy_classes(
    predictive: PredictiveDistribution,
    n_queries: int,
    rng: np.random.Generator,
    *,
    n_configurations: int = N_CONFIGURATIONS,
) -> Choice:
    """Choose rows by the joint information of their classes, for classification (BatchBALD).

    I(y_i; f | y_B) is a mean over the sets of answers to the rows B that are already chosen: over all sets if there are
    at most `n_configurations`, and over that many sets drawn from their joint distribution if there are more. A set of
    answers is represented by the posterior that it gives the draws, so nothing underflows.
    Cost: draws x configurations x rows x classes for every query.

    Parameters
    ----------
    predictive : Predictive
        The prediction of a classifier at the rows to choose from.
    n_queries : int
        How many rows to choose.
    rng : numpy.random.Generator
        Draws sets of answers if there are too many.
    n_configurations : int
        The most sets of answers that are considered.

    Returns
    -------
    Choice
        Rows and their gains, in nats.
    """
    predictive = with_draws(predictive, "greedy_classes")
    if not predictive.is_classification:
        raise ValueError("greedy_classes: this is a regression; use greedy_covariance.")
    p = predictive.draws()  # [S, N, C]
    start = np.full((len(p), 1), 1 / len(p)), np.ones(1)  # P(draw | answers), P(answers): no answer yet
    return _greedy(
        n_queries,
        start,
        lambda state: _information(*state, p),
        lambda state, row: _answered(*state, p[:, row], rng, n_configurations),
    )


def _information(posterior: np.ndarray, weight: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return sum_m weight_m I(y_n; f | answers m) for every row n, a chunk of rows at a time.

    Every term is the entropy of the draws' mixture less the mean entropy of the draws, both under the posterior of the
    same answers. So it is not negative, and the error from drawn answers is small where little is left to learn.
    """
    parts = []
    for start in range(0, p.shape[1], CHUNK_ROWS):
        chunk = p[:, start : start + CHUNK_ROWS]
        mixed = entr(posterior.T @ chunk.reshape(len(p), -1))  # [M, rows x C]
        total = weight @ mixed - (posterior @ weight) @ entr(chunk).reshape(len(p), -1)
        parts.append(np.sum(total.reshape(chunk.shape[1:]), axis=1))
    return np.concatenate(parts)


def _answered(
    posterior: np.ndarray, weight: np.ndarray, p: np.ndarray, rng: np.random.Generator, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Extend the sets of answers by one row with class probabilities p [S, C]; return their posteriors and weights."""
    q = posterior.T @ p  # [M, C]: P(class | answers)
    joint = weight[:, None] * q
    if joint.size <= most:
        before, label = np.nonzero(joint > 0)
        weight = joint[before, label]
    else:
        # stratified: one point in each of `most` equal parts of [0, 1), and every set in proportion to its probability
        points = (np.arange(most) + rng.uniform(size=most)) / most * np.sum(joint)
        drawn = np.minimum(np.searchsorted(np.cumsum(joint), points, side="right"), np.flatnonzero(joint)[-1])
        before, label = np.unravel_index(drawn, joint.shape)
        weight = np.full(most, 1 / most)
    return posterior[:, before] * p[:, label] / q[before, label], weight
