"""Mixtures of Gaussians with equal weights, one for every row and output: what they say, in NumPy.

Means and standard deviations are [S, rows, outputs], the answers [rows, outputs]. Nothing here is compiled: NumPy's and
SciPy's own loops over arrays are several times as fast as XLA's on a CPU for the normal distribution function in
float64. For each row and output, log density and distribution function cost S; a quantile S for each of about five
steps of Newton's method; the ranked probability score S^2 / 2 or S times nodes; the entropy S times nodes.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, ndtr, ndtri, xlogy

_ROOT_2PI = np.sqrt(2 * np.pi)
#: Steps of the search for a quantile at the most, and from which on every other step halves the bracket.
MOST_STEPS, HALVING_FROM = 120, 8
#: The reach of a grid beyond the outermost means, and the largest gap of its nodes, in standard deviations. The rule of
#: equal weights has an error of about exp(-2 pi^2 / gap^2) for Gaussians, 2e-9 here; -p log p between components that
#: lie apart is less smooth, and its error stays below 1e-5.
REACH, GAP = 7.0, 1.0
#: Components up to which a score compares all pairs of them; nodes that a grid has at the least.
MOST_PAIRED, FEWEST_NODES = 32, 16


class Gaussians(NamedTuple):
    """The components at some rows."""

    rows: slice
    mean: np.ndarray
    std: np.ndarray


def cdf(part: Gaussians, y: np.ndarray) -> np.ndarray:
    """Return P(Y <= y)."""
    return np.mean(ndtr((y - part.mean) / part.std), axis=0)


def log_prob(part: Gaussians, y: np.ndarray) -> np.ndarray:
    """Return the log density, of all outputs together where they are independent given the component, [rows]."""
    each = -0.5 * ((y - part.mean) / part.std) ** 2 - np.log(part.std * _ROOT_2PI)
    return logsumexp(np.sum(each, axis=-1), axis=0) - np.log(len(part.mean))


def outputs_log_density(mean: np.ndarray, covariance: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return log (1/S) sum_s N(y; mean_s, covariance_s) for values y [R, B, K], means [S, B, K]: [R, B]."""
    factor = np.linalg.cholesky(covariance)
    inverse = np.linalg.inv(factor)
    constant = np.sum(np.log(np.diagonal(factor, axis1=2, axis2=3)), axis=-1) + 0.5 * mean.shape[-1] * np.log(2 * np.pi)
    each = np.stack(
        [
            -0.5 * np.sum(np.einsum("bkl,rbl->rbk", inverse[s], y - mean[s]) ** 2, axis=-1) - constant[s]
            for s in range(len(mean))
        ]
    )
    return logsumexp(each, axis=0) - np.log(len(mean))


def joint_log_density(covariance: np.ndarray, gap: np.ndarray, noise: np.ndarray | float) -> float:
    """Return log N(gap; 0, covariance + noise^2 I) for one level of noise, or one for every value. Cost N^3 / 3."""
    noisy = covariance.copy()
    noisy[np.diag_indices(len(noisy))] += noise**2
    root = np.linalg.cholesky(noisy)
    scaled = solve_triangular(root, gap, lower=True)
    return float(-0.5 * scaled @ scaled - np.sum(np.log(np.diag(root))) - 0.5 * len(gap) * np.log(2 * np.pi))


def quantile(part: Gaussians, level: float) -> np.ndarray:
    """Return y with P(Y <= y) = level, by Newton's method inside a bracket that shrinks.

    The equation is solved in normal scores, ndtri P(Y <= y) = ndtri(level), where it is nearly linear: exactly so for
    one Gaussian. A level above a half is the one below for -Y, so that no probability is rounded to 1.
    """
    if level > 0.5:
        return -quantile(Gaussians(part.rows, -part.mean, part.std), 1 - level)
    shape, score = part.mean.shape[1:], float(ndtri(level))
    mean, std = (np.reshape(np.broadcast_to(a, part.mean.shape), (len(part.mean), -1)) for a in part[1:])
    own = mean + std * score
    low, high = np.min(own, axis=0), np.max(own, axis=0)
    centre = np.mean(mean, axis=0)
    y = np.clip(centre + score * np.sqrt(np.mean(std**2 + (mean - centre) ** 2, axis=0)), low, high)
    left = np.flatnonzero(high > low)
    for step in range(MOST_STEPS):
        if not len(left):
            break
        y[left], low[left], high[left], moved = _newton(
            mean[:, left],
            std[:, left],
            y[left],
            low[left],
            high[left],
            level,
            halve=step >= HALVING_FROM and step % 2 == 1,
        )
        scale = np.maximum(np.abs(y[left]), np.min(std[:, left], axis=0))
        left = left[moved > 4 * np.finfo(float).eps * scale]
    return y.reshape(shape)


def _newton(
    mean: np.ndarray, std: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray, level: float, *, halve: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the next place, the bracket, and how far the place has moved."""
    z = (y - mean) / std
    probability, density = np.mean(ndtr(z), axis=0), np.mean(np.exp(-0.5 * z**2) / std, axis=0) / _ROOT_2PI
    below = probability < level
    low, high = np.where(below, y, low), np.where(below, high, y)
    with np.errstate(all="ignore"):
        score = ndtri(probability)
        step = (ndtri(level) - score) * np.exp(-0.5 * score**2) / _ROOT_2PI / density
    proposed = y + step
    is_inside = np.isfinite(proposed) & (proposed >= low) & (proposed <= high) & (not halve)
    proposed = np.where(is_inside, proposed, 0.5 * (low + high))
    proposed = np.where(probability == level, y, proposed)
    return proposed, low, high, np.abs(proposed - y)


def crps(part: Gaussians, y: np.ndarray) -> np.ndarray:
    """Return E|Y - y| - E|Y - Y'| / 2: in closed form over pairs, or with E|Y - Y'| / 2 = integral of F (1 - F)."""
    from_y = np.mean(_mean_absolute(part.mean - y, part.std), axis=0)
    if len(part.mean) <= MOST_PAIRED:
        return from_y - 0.5 * _mean_gap(part.mean, part.std)
    gap, shape = np.empty(part.mean[0].size), part.mean.shape[1:]
    for chosen, mean, std, nodes in _grids(part, len(part.mean) // 2):
        gap[chosen] = 0.5 * _mean_gap(mean, std) if nodes is None else _integral(mean, std, nodes, _gini)
    return from_y - gap.reshape(shape)


def _mean_gap(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return E|Y - Y'|; the pairs are a component and the one that is 1, 2, ... places on, all around."""
    num = len(mean)
    total = np.sum(2 / np.sqrt(np.pi) * std, axis=0)  # a component with itself
    for shift in range(1, num // 2 + 1):
        times = 1.0 if 2 * shift == num else 2.0
        other_mean, other_std = np.roll(mean, shift, axis=0), np.roll(std, shift, axis=0)
        total += times * np.sum(_mean_absolute(mean - other_mean, np.sqrt(std**2 + other_std**2)), axis=0)
    return total / num**2


def _mean_absolute(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return E|v| for v ~ N(mean, std^2): mean (2 Phi(z) - 1) + 2 std phi(z), z = mean / std."""
    z = mean / std
    return mean * (2 * ndtr(z) - 1) + 2 / _ROOT_2PI * std * np.exp(-0.5 * z**2)


def entropy(part: Gaussians) -> np.ndarray:
    """Return the differential entropy of one output, [rows]: on a grid, or by nodes of each component.

    Nodes of each component are for components far apart, where a grid would be long; they are within 0.001.
    """
    found = np.empty(part.mean[0].size)
    for chosen, mean, std, nodes in _grids(part, 8 * len(part.mean)):
        found[chosen] = _entropy_by_nodes(mean, std) if nodes is None else _integral(mean, std, nodes, _surprise)
    return found


def _entropy_by_nodes(mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    points, weights = np.polynomial.hermite_e.hermegauss(8)
    total = np.zeros(mean.shape[1])
    for own_mean, own_std in zip(mean, std, strict=True):
        y = own_mean + own_std * points[:, None]  # [nodes, rows]
        each = -0.5 * ((y - mean[:, None]) / std[:, None]) ** 2 - np.log(std[:, None] * _ROOT_2PI)
        total -= weights / weights.sum() @ (logsumexp(each, axis=0) - np.log(len(mean)))
    return total / len(mean)


def _grids(
    part: Gaussians, most: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, int] | None]]:
    """Yield rows that take as many nodes, their components, and where their grid lies: low end, gap, nodes.

    Rows that would take more nodes than `most` come last, without a grid.
    """
    mean, std = (np.reshape(np.broadcast_to(a, part.mean.shape), (len(part.mean), -1)) for a in part[1:])
    low, high = np.min(mean - REACH * std, axis=0), np.max(mean + REACH * std, axis=0)
    needed = (high - low) / (GAP * np.min(std, axis=0))
    done, size = np.zeros(len(needed), bool), FEWEST_NODES
    while size <= most and not np.all(done):
        chosen = np.flatnonzero(~done & (needed <= size))
        done[chosen] = True
        if len(chosen):
            yield chosen, mean[:, chosen], std[:, chosen], (low[chosen], (high - low)[chosen] / size, size)
        size += size // 2
    if not np.all(done):
        chosen = np.flatnonzero(~done)
        yield chosen, mean[:, chosen], std[:, chosen], None


def _integral(
    mean: np.ndarray, std: np.ndarray, nodes: tuple[np.ndarray, np.ndarray, int], of: Callable[..., np.ndarray]
) -> np.ndarray:
    """Return the integral of a function of the mixture over a grid, [rows]."""
    low, gap, size = nodes
    y = low + gap * (np.arange(size)[:, None] + 0.5)  # [nodes, rows]
    return gap * np.sum(of(mean, std, y), axis=0)


def _gini(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return F (1 - F)."""
    below = sum(ndtr((y - m) / s) for m, s in zip(mean, std, strict=True)) / len(mean)
    return below * (1 - below)


def _surprise(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return -p log p."""
    density = np.zeros_like(y)
    for m, s in zip(mean, std, strict=True):
        density += np.exp(-0.5 * ((y - m) / s) ** 2) / s
    density /= len(mean) * _ROOT_2PI
    return -xlogy(density, density)
