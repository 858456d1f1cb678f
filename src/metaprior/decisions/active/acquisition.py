"""Acquisition functions: how informative the answer to each row of a pool would be, and the choice of rows by it.

Every function takes the predictive distribution of an estimator at the rows to choose from. That is a `Predictive` for
the estimators of this library. For others it is a Gaussian or class probabilities, which say how uncertain y is but not
how much of the uncertainty is noise.
"""

from collections.abc import Callable

import numpy as np

from metaprior.decisions.active.batch import Choice, greedy_classes, greedy_covariance, with_draws
from metaprior.estimators.renamed import accepts_old_keywords
from metaprior.io.renamed import LOOP_PARAMETERS
from metaprior.predictive import Predictive, PredictiveDistribution

#: One number per row, larger where an answer is more informative.
Acquisition = Callable[[PredictiveDistribution], np.ndarray]


def entropy(predictive: PredictiveDistribution) -> np.ndarray:
    """Return H[y | x] in nats, which is high where there is much noise or little data."""
    return predictive.entropy


def variance(predictive: PredictiveDistribution) -> np.ndarray:
    """Return the epistemic variance, the part of var[y | x] that more data would remove, summed over outputs.

    For an estimator of another library, which does not separate the parts, it is all of the variance.
    """
    if isinstance(predictive, Predictive):
        values = with_draws(predictive, "variance").epistemic_variance
    elif predictive.is_classification:
        values = predictive.probabilities * (1 - predictive.probabilities)
    else:
        values = predictive.variance
    return values.reshape(len(values), -1).sum(axis=1)


def mutual_information(predictive: PredictiveDistribution) -> np.ndarray:
    """Return I[y; f | x] in nats (BALD): how much an answer would tell about the function."""
    return with_draws(predictive, "mutual_information").mutual_information


def prediction_information(predictive: PredictiveDistribution) -> np.ndarray:
    """Return the mean over the other rows x' of I[y; y' | x, x'] in nats: what an answer would tell about theirs.

    The other scores ask what is known least, which is often a row unlike all others, whose answer helps nowhere else.
    This one asks what helps to predict the rows that are given (EPIG; Bickford Smith et al., 2023). Answers are treated
    as jointly Gaussian, so that I = -log(1 - r^2) / 2 for a correlation r; outputs are treated as independent and
    their information is added. Regression only. Cost: the covariance of all rows.
    """
    predictive = with_draws(predictive, "prediction_information")
    if predictive.is_classification:
        raise ValueError("prediction_information: classes have no covariance; use 'mutual_information'.")
    covariance = predictive.covariance(noise=True).reshape(len(predictive.mean), len(predictive.mean), -1)
    each = np.arange(len(covariance))
    variances = covariance[each, each]  # [N, K]
    told = np.clip(covariance**2 / (variances[:, None] * variances), 0, 1 - 1e-12)
    told[each, each] = 0
    return np.asarray(np.sum(-0.5 * np.log1p(-told), axis=(1, 2)) / max(len(each) - 1, 1))


#: Acquisition functions from a predictive distribution to one number per row.
POINTWISE: dict[str, Acquisition] = {
    "entropy": entropy,
    "variance": variance,
    "mutual_information": mutual_information,
    "prediction_information": prediction_information,
}
#: All names; the last two choose rows without scoring them one by one.
NAMES = (*POINTWISE, "joint_information", "random")
#: Those that need function draws.
NEED_DRAWS = ("mutual_information", "prediction_information", "joint_information")


@accepts_old_keywords(LOOP_PARAMETERS)
def choose(
    acquisition: str | Acquisition, predictive: PredictiveDistribution, n_queries: int, rng: np.random.Generator
) -> Choice:
    """Choose rows.

    Parameters
    ----------
    acquisition : str or callable
        "entropy", "variance", "mutual_information", "prediction_information" or a function from a predictive
        distribution to one number per row chooses the rows with the largest numbers, and the first of equal ones.
        "joint_information" chooses rows that are most informative together, by `greedy_covariance` or
        `greedy_classes`. "random" chooses rows at random.
    predictive : Predictive
        The prediction of an estimator at the rows to choose from.
    n_queries : int
        How many rows to choose. If there are fewer, all are chosen.
    rng : numpy.random.Generator
        Used by "random", and by "joint_information" for classes.

    Returns
    -------
    Choice
        The rows, best first, and their numbers (NaN for random rows).
    """
    if acquisition == "random":
        return random_choice(len(predictive.mean), n_queries, rng)
    if acquisition == "joint_information":
        if predictive.is_classification:
            return greedy_classes(predictive, n_queries, rng)
        return greedy_covariance(predictive, n_queries)
    check_acquisition(acquisition)
    function = POINTWISE[acquisition] if isinstance(acquisition, str) else acquisition
    values = np.asarray(function(predictive), np.float64)
    if values.shape != (len(predictive.mean),) or np.any(np.isnan(values)):
        raise ValueError(
            f"acquisition: expected {len(predictive.mean)} numbers, one per row, none of them NaN; got an array of "
            f"shape {values.shape}: {values!r}."
        )
    rows = np.argsort(-values, kind="stable")[:n_queries]
    return Choice(rows, values[rows])


def random_choice(n_rows: int, n_queries: int, rng: np.random.Generator) -> Choice:
    """Choose rows uniformly at random. Their values are NaN."""
    rows = rng.permutation(n_rows)[:n_queries]
    return Choice(rows, np.full(len(rows), np.nan))


def check_acquisition(acquisition: object, has_draws: bool = True) -> None:
    """Raise an error unless it is a function, or the name of an acquisition that the estimator supports."""
    if not has_draws and acquisition in NEED_DRAWS:
        raise ValueError(
            f"acquisition: {acquisition!r} needs function draws, which only estimators of this library have; use "
            "'entropy', 'variance' or 'random'."
        )
    if not (callable(acquisition) or (isinstance(acquisition, str) and acquisition in NAMES)):
        raise ValueError(f"acquisition: expected one of {NAMES}, or a function of a Predictive; got {acquisition!r}.")
