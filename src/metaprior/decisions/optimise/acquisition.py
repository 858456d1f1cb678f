"""Which point to ask for next: Thompson sampling, expected improvement, or a random point.

The first two rules evaluate candidates (scrambled Sobol points over the box, and points around the best one so far) and
improve the best of them by L-BFGS if there are gradients. The result depends only on the situation and its seed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm

from metaprior.decisions.optimise.box import Box
from metaprior.decisions.optimise.functions import Criterion, DrawnFunctions, functions_of, improvement, lowest
from metaprior.estimators.network_functions import is_network
from metaprior.predictive import Predictive
from metaprior.predictive.from_sklearn import distribution_predictor_of

#: The numbers of candidates over the box and around the best point, and how far from it, in fractions of the sides.
NUM_SPREAD, NUM_AROUND = 1024, 256
AROUND = (1e-3, 0.3)
#: How many candidates L-BFGS starts from, and its largest number of steps.
NUM_STARTS, NUM_STEPS = 4, 60
#: A point nearer than this to a known point, in fractions of the sides, is not asked for.
TOO_NEAR = 1e-4
#: The number of draws that expected improvement is averaged over.
NUM_DRAWS = 64


@dataclass(frozen=True)
class Situation:
    """What is known when points are chosen: the `observed` points, a model fitted to them, and `pending` points."""

    box: Box
    model: Any
    observed: np.ndarray
    targets: np.ndarray
    pending: np.ndarray
    seed: np.random.SeedSequence

    @property
    def known(self) -> np.ndarray:
        """All points that have been asked for."""
        return np.vstack([self.observed, self.pending])

    def candidates(self, rng: np.random.Generator) -> np.ndarray:
        """Return points over the box and around the best observed point."""
        best = self.observed[np.argmin(self.targets)]
        radii = np.exp(rng.uniform(np.log(AROUND[0]), np.log(AROUND[1]), NUM_AROUND))
        spread = self.box.spread(NUM_SPREAD, int(rng.integers(2**31)))
        return np.vstack([spread, self.box.around(best, radii, rng)])


def thompson(situation: Situation, count: int) -> np.ndarray:
    """Return the minima of functions drawn from the posterior, with a new function for every point."""
    rng = np.random.default_rng(situation.seed)
    candidates, chosen = situation.candidates(rng), np.empty((0, situation.box.n_dimensions))
    for _ in range(count):
        functions = functions_of(situation.model, 1, int(rng.integers(2**31 - 1)))
        values = functions.at(candidates)[0]
        found = _followed(functions, lowest, np.zeros(1), candidates[np.argsort(values)], situation, chosen)
        chosen = np.vstack([chosen, found])
    return chosen


def expected_improvement(situation: Situation, count: int) -> np.ndarray:
    """Return points of the largest expected improvement, E max(known - f, 0).

    Every draw is compared with its own lowest value at the known points, including pending ones and those chosen
    earlier in the batch. For a model that is not a network, a single point is chosen by the closed form for Gaussians.
    """
    alone = count == 1 and len(situation.pending) == 0
    if alone and not is_network(situation.model):
        return _gaussian_improvement(situation)
    rng = np.random.default_rng(situation.seed)
    candidates, chosen = situation.candidates(rng), np.empty((0, situation.box.n_dimensions))
    functions = functions_of(situation.model, NUM_DRAWS, int(rng.integers(2**31 - 1)))
    num_known = len(situation.known)
    f = functions.at(np.vstack([situation.known, candidates]))
    known, f = f[:, :num_known].min(axis=1), f[:, num_known:]
    for _ in range(count):
        values = improvement(f, known)
        if not np.any(values < 0):  # no draw is lower at any candidate: take the minima of draws instead
            return np.vstack([chosen, thompson(situation, count - len(chosen))])
        found = _followed(functions, improvement, known, candidates[np.argsort(values)], situation, chosen)
        chosen = np.vstack([chosen, found])
        at_found = functions.at(found[None])[:, 0] if functions.smooth else f[:, _row(candidates, found)]
        known = np.minimum(known, at_found)
    return chosen


def uniform(situation: Situation, count: int) -> np.ndarray:
    """Return random points, the baseline for the other rules."""
    rng = np.random.default_rng(situation.seed)
    return situation.box.from_unit(rng.uniform(size=(count, situation.box.n_dimensions)))


#: The rules by name.
ACQUISITIONS: dict[str, Callable[[Situation, int], np.ndarray]] = {
    "thompson": thompson,
    "ei": expected_improvement,
    "random": uniform,
}


# --- downhill ------------------------------------------------------------------------


def _followed(
    functions: DrawnFunctions,
    criterion: Criterion,
    known: np.ndarray,
    ordered: np.ndarray,
    situation: Situation,
    chosen: np.ndarray,
) -> np.ndarray:
    """Return the best new point among the candidates, best first in `ordered`, and what L-BFGS makes of the first."""
    if functions.smooth:
        ends = descended(lambda X: functions.slopes(X, criterion, known), ordered[:NUM_STARTS], situation.box)
        ordered = np.vstack([ends, ordered])
    return _first_new(ordered, situation, chosen)


def descended(
    slopes: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], starts: np.ndarray, box: Box
) -> np.ndarray:
    """Return where L-BFGS ends from all starts, lowest first. The starts are one problem, with one call per step."""
    sides, shape = box.high - box.low, starts.shape

    def total(u: np.ndarray) -> tuple[float, np.ndarray]:
        values, gradients = slopes(box.from_unit(u.reshape(shape)))
        return float(np.sum(values)) / unit, (gradients * sides).ravel() / unit

    # in these units the first step has at most length 1
    unit = max(float(np.linalg.norm(slopes(starts)[1] * sides)), 1e-300)
    begin = np.clip(box.to_unit(starts), 0, 1).ravel()
    options = {"maxiter": NUM_STEPS, "maxfun": 2 * NUM_STEPS}
    found = minimize(total, begin, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * len(begin), options=options)
    ends = [box.from_unit(found.x.reshape(shape)), starts]
    values = np.concatenate([slopes(part)[0] for part in ends])  # two calls of equal size need one compiled program
    return np.vstack(ends)[np.argsort(values, kind="stable")][: len(starts)]


def _first_new(ordered: np.ndarray, situation: Situation, chosen: np.ndarray) -> np.ndarray:
    """Return the first point that is not too near a known one."""
    known = situation.box.to_unit(np.vstack([situation.known, chosen]))
    for x in ordered:
        if np.min(np.max(np.abs(known - situation.box.to_unit(x)), axis=1)) > TOO_NEAR:
            return x
    return ordered[0]


def _row(rows: np.ndarray, x: np.ndarray) -> int:
    return int(np.flatnonzero(np.all(rows == x, axis=1))[0])


# --- in closed form ------------------------------------------------------------------


def gaussian_improvement(mean: np.ndarray, std: np.ndarray, known: float) -> np.ndarray:
    """Return E max(known - f, 0) for f ~ N(mean, std^2)."""
    # (known - mean) Phi(z) + std phi(z), z = (known - mean) / std
    std = np.maximum(std, 1e-12)
    z = (known - mean) / std
    return (known - mean) * norm.cdf(z) + std * norm.pdf(z)


def _gaussian_improvement(situation: Situation) -> np.ndarray:
    """Return the point of the largest expected improvement over the lowest mean at the observed points."""
    answer = distribution_predictor_of("estimator", situation.model)
    known = float(np.min(answer(situation.model, situation.observed).mean))

    def values(X: np.ndarray) -> np.ndarray:
        predicted: Any = answer(situation.model, X)
        tells_noise = isinstance(predicted, Predictive)
        std = np.sqrt(predicted.epistemic_variance) if tells_noise else predicted.std
        return -gaussian_improvement(predicted.mean, std, known)

    candidates = situation.candidates(np.random.default_rng(situation.seed))
    ordered = candidates[np.argsort(values(candidates))]
    ends = descended(lambda X: _differences(values, X, situation.box), ordered[:NUM_STARTS], situation.box)
    nothing = np.empty((0, situation.box.n_dimensions))
    return _first_new(np.vstack([ends, ordered]), situation, nothing)[None]


def _differences(
    function: Callable[[np.ndarray], np.ndarray], X: np.ndarray, box: Box
) -> tuple[np.ndarray, np.ndarray]:
    """Return a function's values and its gradient by central differences, in one call."""
    rows, columns = X.shape
    step = 1e-5 * (box.high - box.low)
    moves = np.concatenate([np.zeros((1, columns)), np.diag(step), -np.diag(step)])
    values = function((X[:, None] + moves).reshape(-1, columns)).reshape(rows, -1)
    return values[:, 0], (values[:, 1 : columns + 1] - values[:, columns + 1 :]) / (2 * step)
