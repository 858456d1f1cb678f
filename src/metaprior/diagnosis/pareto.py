"""The tail of importance weights: a generalised Pareto distribution, fitted as Zhang and Stephens (2009) do.

For log weights log w_s, the largest M = min(S / 5, 3 sqrt(S)) weights are compared with the largest of the rest. What
they exceed it by has a density (1 + k x / sigma)^(-1/k - 1) / sigma, and k says how heavy the tail is: moments of the
weights of order 1/k and more do not exist. Below 0.5 the variance exists; up to 0.7 means of weighted draws are still
reliable (Vehtari, Simpson, Gelman, Yao, Gabry 2024). The estimate is drawn towards 0.5 as if by ten more draws.
"""

from typing import NamedTuple

import numpy as np

#: The shape up to which weighted draws are reliable.
GOOD_K = 0.7
#: Draws that the prior of the shape is worth, and its mean.
PRIOR_COUNT, PRIOR_K = 10, 0.5
#: The fewest draws of a tail that can be fitted.
LEAST_TAIL = 5


class ParetoFit(NamedTuple):
    """The shape and the scale of a generalised Pareto distribution."""

    k: float
    sigma: float


def fit_pareto(excesses: np.ndarray) -> ParetoFit:
    """Return the shape and scale that fit positive excesses: a posterior mean over a grid of theta = -k / sigma.

    Given theta, k = mean log(1 - theta x), and the profile log likelihood is n (log(-theta / k) - k - 1). The grid is
    the quantiles of a prior whose scale comes from the first quartile and the largest excess.
    """
    x = np.sort(np.asarray(excesses, np.float64))
    count = len(x)
    num_nodes = 30 + int(np.sqrt(count))
    quartile = x[int(count / 4 + 0.5) - 1]
    theta = 1 / x[-1] + (1 - np.sqrt(num_nodes / (np.arange(1, num_nodes + 1) - 0.5))) / (3 * quartile)
    k = np.mean(np.log1p(-theta[:, None] * x), axis=1)
    log_likelihood = count * (np.log(-theta / k) - k - 1)
    weights = np.exp(log_likelihood - np.max(log_likelihood))
    mean = float(np.sum(theta * weights) / np.sum(weights))
    shape = float(np.mean(np.log1p(-mean * x)))
    return ParetoFit(shape, -shape / mean)


def pareto_k_of(log_weights: np.ndarray) -> float:
    """Return k-hat of the weights: the shape of their upper tail. -inf if the largest weights are all the same."""
    logs = np.sort(np.asarray(log_weights, np.float64))
    if not np.all(np.isfinite(logs)):
        raise ValueError(f"log_weights: expected finite numbers; {np.sum(~np.isfinite(logs))} are not.")
    size = int(np.ceil(min(0.2 * len(logs), 3 * np.sqrt(len(logs)))))
    if size < LEAST_TAIL:
        raise ValueError(f"log_weights: expected at least 25 draws for a tail of {LEAST_TAIL}; got {len(logs)}.")
    weights = np.exp(logs - logs[-1])
    excesses = weights[-size:] - weights[-size - 1]
    if excesses[-1] <= np.finfo(np.float64).eps:
        return -np.inf
    k = fit_pareto(np.maximum(excesses, np.finfo(np.float64).tiny)).k
    return (size * k + PRIOR_COUNT * PRIOR_K) / (size + PRIOR_COUNT)


def effective_fraction(log_weights: np.ndarray) -> float:
    """Return (sum w)^2 / (S sum w^2): the part of the draws that the weighted draws are worth."""
    weights = np.exp(np.asarray(log_weights, np.float64) - np.max(log_weights))
    return float(np.sum(weights) ** 2 / (len(weights) * np.sum(weights**2)))


def log_mean_exp(log_weights: np.ndarray) -> float:
    """Return log of the mean weight: a bound of the evidence that is tighter than the mean of the log weights."""
    largest = float(np.max(log_weights))
    return largest + float(np.log(np.mean(np.exp(np.asarray(log_weights, np.float64) - largest))))
