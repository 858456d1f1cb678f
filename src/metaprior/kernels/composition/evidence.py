"""The evidence of a composition under Gaussian noise, its gradient, and the hyper-parameters that maximise it.

    log p(Y) = -tr(Y' C^-1 Y) / 2 - P log |C| / 2 - N P log(2 pi) / 2,    C = K + c 1 1' + noise^2 I,

for P targets that share everything. theta has the logs of the noise's variance and of the constant's c, and then the
hyper-parameters of K. The constant is there for every composition: what the mean of the data is says nothing about it.
Cost N^3 an evaluation.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

from metaprior.kernels.composition.bases import Evaluated, Rows
from metaprior.kernels.composition.expression import Composition

#: Bounds of the logs of the variances of the noise and of the constant, in variances of the target. Less noise than
#: the first cannot be told from rounding.
NOISE, CONSTANT = (np.log(1e-6), np.log(4.0)), (np.log(1e-6), np.log(100.0))
#: How many hyper-parameters come before those of the composition.
COMMON = 2


class Fitted(NamedTuple):
    """A composition with hyper-parameters, and their log evidence."""

    composition: Composition
    theta: np.ndarray
    log_evidence: float

    def score(self, num_rows: int) -> float:
        """Return the log evidence less log(N) / 2 for every hyper-parameter (BIC)."""
        return self.log_evidence - 0.5 * np.log(num_rows) * self.composition.num_hypers


class Evidence:
    """The evidence of compositions for the same rows and targets."""

    def __init__(self, x: np.ndarray, y: np.ndarray) -> None:
        self.rows, self.y = Rows(x), y
        self.num_evaluations = 0

    def __call__(self, composition: Composition, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log evidence and its gradient; -inf and zeros where the covariance cannot be factorised."""
        covariance, pull = self._covariance(composition, theta)
        value, factor, weights = self._solved(covariance)
        if factor is None:
            return value, np.zeros_like(theta)
        slope = _slope(weights, factor)
        noise, constant = np.exp(theta[:COMMON])
        return value, np.concatenate([[noise * np.trace(slope), constant * np.sum(slope)], pull(slope)])

    def value(self, composition: Composition, theta: np.ndarray) -> float:
        """Return the log evidence alone, at less than half of the cost."""
        return self._solved(self._covariance(composition, theta)[0])[0]

    def _covariance(self, composition: Composition, theta: np.ndarray) -> Evaluated:
        """Return C, and how slopes by it are pulled back to the composition's own hyper-parameters."""
        self.num_evaluations += 1
        noise, constant = np.exp(theta[:COMMON])
        num_rows = len(self.y)
        if composition.terms:
            k, pull = composition.evaluated(self.rows, theta[COMMON:])
        else:
            k, pull = np.zeros((num_rows, num_rows)), lambda slope: np.zeros(0)
        covariance = k + constant
        covariance[np.diag_indices(num_rows)] += noise
        return covariance, pull

    def _solved(self, covariance: np.ndarray) -> tuple[float, np.ndarray | None, np.ndarray]:
        """Return the log evidence, the factor of C (None where there is none) and C^-1 Y."""
        try:
            factor = cholesky(covariance, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return -np.inf, None, np.zeros_like(self.y)
        weights = cho_solve((factor, True), self.y, check_finite=False)
        value = -0.5 * np.vdot(self.y, weights) - self.y.shape[1] * np.sum(np.log(np.diag(factor)))
        return float(value - 0.5 * self.y.size * np.log(2 * np.pi)), factor, weights

    def climbed(self, start: Fitted, steps: int) -> Fitted:
        """Return the hyper-parameters after so many steps of L-BFGS at most."""
        composition = start.composition
        bounds = np.array([NOISE, CONSTANT, *composition.bounds(start.theta[COMMON:])])

        def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = self(composition, theta)
            return (-value, -gradient) if np.isfinite(value) else (1e10, gradient)

        options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 1e-9, "gtol": 1e-3}
        inside = np.clip(start.theta, *bounds.T)
        found = minimize(loss, inside, method="L-BFGS-B", jac=True, bounds=bounds, options=options)
        return Fitted(composition, found.x, -float(found.fun))

    def at(self, composition: Composition, theta: np.ndarray) -> Fitted:
        """Return the composition with these hyper-parameters."""
        return Fitted(composition, theta, self.value(composition, theta))

    def weights(self, fitted: Fitted) -> np.ndarray:
        """Return C^-1 Y [N, P], from which the posterior mean of every component follows."""
        return self._solved(self._covariance(fitted.composition, fitted.theta)[0])[2]


def _slope(weights: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return d log p(Y) / dC = (W W' - P C^-1) / 2, for W = C^-1 Y."""
    inverse = np.tril(dpotri(factor, lower=1)[0])
    inverse += np.tril(inverse, -1).T
    return 0.5 * (weights @ weights.T - weights.shape[1] * inverse)
