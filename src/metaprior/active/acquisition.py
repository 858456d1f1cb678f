"""Acquisition: how much it is worth to have a row answered, as a number a row, and the choice of rows by it.

Every function takes what an estimator predicts at the rows to choose from. That is a `Predictive` for the estimators of
this library; for others it is a Gaussian or class probabilities, which say how sure they are of y but not how much of
that is noise.
"""

from collections.abc import Callable

import numpy as np

from metaprior.active.batch import Choice, greedy_classes, greedy_covariance, with_draws
from metaprior.predictive import Predictive, PredictiveDistribution

#: A number a row, larger where an answer is worth more.
Acquisition = Callable[[PredictiveDistribution], np.ndarray]


def entropy(predictive: PredictiveDistribution) -> np.ndarray:
    """Return H[y | x] in nats: where the answer is least known, be it for noise or for want of data."""
    return predictive.entropy


def variance(predictive: PredictiveDistribution) -> np.ndarray:
    """Return the epistemic variance, the part of var[y | x] that more data would remove; summed over outputs, classes.

    Of an estimator from elsewhere, which does not tell the parts, it is all of the variance.
    """
    if isinstance(predictive, Predictive):
        values = with_draws(predictive, "variance").epistemic_variance
    elif predictive.is_classification:
        values = predictive.probabilities * (1 - predictive.probabilities)
    else:
        values = predictive.variance
    return values.reshape(len(values), -1).sum(axis=1)


def mutual_information(predictive: PredictiveDistribution) -> np.ndarray:
    """Return I[y; f | x] in nats (BALD): how much an answer would tell of the function."""
    return with_draws(predictive, "mutual_information").mutual_information


#: Acquisitions that look at every row for itself.
POINTWISE: dict[str, Acquisition] = {
    "entropy": entropy,
    "variance": variance,
    "mutual_information": mutual_information,
}
#: All names; the last two choose rows and not numbers.
NAMES = (*POINTWISE, "joint_information", "random")
#: Those that need function draws.
NEED_DRAWS = ("mutual_information", "joint_information")


def choose(
    acquisition: str | Acquisition, predictive: PredictiveDistribution, num_queries: int, rng: np.random.Generator
) -> Choice:
    """Choose rows.

    Parameters
    ----------
    acquisition : str or callable
        "entropy", "variance", "mutual_information" or a function from a `Predictive` to a number a row: the rows with
        the largest numbers, the first of equal ones. "joint_information": rows that tell most together, by
        `greedy_covariance` or `greedy_classes`. "random": any rows, alike.
    predictive : Predictive
        What an estimator says of the rows to choose from.
    num_queries : int
        How many rows; all of them where there are fewer.
    rng : numpy.random.Generator
        For what is random.

    Returns
    -------
    Choice
        The rows, best first, and the numbers of them (NaN for random ones).
    """
    if acquisition == "random":
        return random_choice(len(predictive.mean), num_queries, rng)
    if acquisition == "joint_information":
        if predictive.is_classification:
            return greedy_classes(predictive, num_queries, rng)
        return greedy_covariance(predictive, num_queries)
    check_acquisition(acquisition)
    function = POINTWISE[acquisition] if isinstance(acquisition, str) else acquisition
    values = np.asarray(function(predictive), np.float64)
    if values.shape != (len(predictive.mean),) or np.any(np.isnan(values)):
        raise ValueError(
            f"acquisition: expected {len(predictive.mean)} numbers, one a row, none of them NaN; got an array of shape "
            f"{values.shape}: {values!r}."
        )
    rows = np.argsort(-values, kind="stable")[:num_queries]
    return Choice(rows, values[rows])


def random_choice(num_rows: int, num_queries: int, rng: np.random.Generator) -> Choice:
    """Return rows chosen alike; nothing is known of them."""
    rows = rng.permutation(num_rows)[:num_queries]
    return Choice(rows, np.full(len(rows), np.nan))


def check_acquisition(acquisition: object, has_draws: bool = True) -> None:
    """Raise unless it is a function or the name of an acquisition, and one that can be had."""
    if not has_draws and acquisition in NEED_DRAWS:
        raise ValueError(
            f"acquisition: {acquisition!r} needs function draws, which estimators of this library have; with another "
            "take 'entropy', 'variance' or 'random'."
        )
    if not (callable(acquisition) or (isinstance(acquisition, str) and acquisition in NAMES)):
        raise ValueError(f"acquisition: expected one of {NAMES}, or a function of a Predictive; got {acquisition!r}.")
