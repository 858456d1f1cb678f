"""Simulation-based calibration: the rank of a true value among draws from the posterior given its data.

Draw the truth from the prior, data from the truth, and L draws from the posterior. If the posterior is right, the
number of draws below the truth is uniform on 0, ..., L, and a central interval of the draws contains the truth as often
as its level says. Ranks have one row per replicate (independent) and one column per quantity (not independent).
"""

import numpy as np
from scipy import stats

from metaprior_reproduction.parts.item import Summary
from metaprior_reproduction.parts.verdicts import summarised

#: The most bins of a histogram of ranks, and the least expected count per bin, which the chi-square test needs.
MOST_BINS, LEAST_EXPECTED = 20, 5


def ranks_of(truth: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return how many draws lie below the truth: [R, Q] from truths [R, Q] and draws [R, L, Q]."""
    if draws.ndim != truth.ndim + 1 or (draws.shape[0], *draws.shape[2:]) != truth.shape:
        raise ValueError(f"draws: expected the truths' shape {truth.shape} with draws second; got {draws.shape}.")
    return np.sum(draws < truth[:, None], axis=1)


def thinned(draws: np.ndarray, count: int) -> np.ndarray:
    """Return `count` draws, evenly spaced along the second axis and as far apart as possible."""
    step = draws.shape[1] // count
    if step < 1:
        raise ValueError(f"draws: expected at least {count}, as many as are ranked; got {draws.shape[1]}.")
    return draws[:, step - 1 : step * count : step]


def bins_for(num_replicates: int, num_draws: int, most: int = MOST_BINS) -> int:
    """Return the largest allowed number of bins that divides the number of ranks, `num_draws` + 1."""
    allowed = min(most, max(2, num_replicates // LEAST_EXPECTED))
    return max(bins for bins in range(1, allowed + 1) if (num_draws + 1) % bins == 0)


def binned(ranks: np.ndarray, num_draws: int, num_bins: int) -> np.ndarray:
    """Return the histogram of the ranks of one quantity, over bins of equally many ranks."""
    if (num_draws + 1) % num_bins:
        raise ValueError(
            f"num_bins: expected a divisor of {num_draws + 1}, the number of ranks that {num_draws} draws have; "
            f"got {num_bins}."
        )
    return np.bincount(np.asarray(ranks, int) * num_bins // (num_draws + 1), minlength=num_bins)


def p_value(ranks: np.ndarray, num_draws: int) -> float:
    """Return the p-value of uniform ranks: the smallest of the quantities' chi-square tests, times their number.

    Quantities of one replicate depend on each other; the factor (Bonferroni's) is valid for any dependence.
    """
    columns, num_bins = ranks.reshape(len(ranks), -1).T, bins_for(len(ranks), num_draws)
    values = [stats.chisquare(binned(column, num_draws, num_bins)).pvalue for column in columns]
    return float(min(1.0, len(values) * min(values)))


def distances(ranks: np.ndarray, num_draws: int) -> np.ndarray:
    """Return, for every quantity, the Kolmogorov distance of its ranks from uniform ones."""
    levels = np.arange(num_draws + 1)
    below = np.mean(ranks[:, None] <= levels.reshape(-1, *[1] * (ranks.ndim - 1)), axis=0)
    uniform = (levels + 1) / (num_draws + 1)
    return np.max(np.abs(below - uniform.reshape(-1, *[1] * (ranks.ndim - 1))), axis=0)


def usual_distance(num_replicates: int) -> float:
    """Return the mean of that distance for uniform ranks and many replicates: sqrt(pi / 2) log 2 / sqrt(R)."""
    return float(np.sqrt(np.pi / 2) * np.log(2) / np.sqrt(num_replicates))


def covered(ranks: np.ndarray, num_draws: int, percent: int) -> np.ndarray:
    """Return whether the central interval of the draws contains the truth; it ends at draws, so its level is exact."""
    outside = (100 - percent) * (num_draws + 1) / 200
    if outside != round(outside):
        raise ValueError(
            f"num_draws: expected a number for which {percent} % of the {num_draws + 1} ranks, and half of the rest, "
            f"are whole numbers (39, 79 or 199 for 50, 90 and 95 %); got {num_draws}."
        )
    return (ranks >= outside) & (ranks <= num_draws - outside)


def coverage(ranks: np.ndarray, num_draws: int, percent: int) -> Summary:
    """Return the share of truths inside the central interval, with its standard error over replicates."""
    inside = covered(ranks, num_draws, percent)
    return summarised(inside.reshape(len(inside), -1).mean(axis=1))


def uniform_band(num_replicates: int, num_bins: int, level: float = 0.99) -> tuple[float, float]:
    """Return the interval that contains the count of one bin with probability `level` if ranks are uniform."""
    low, high = stats.binom(num_replicates, 1 / num_bins).interval(level)
    return float(low), float(high)
