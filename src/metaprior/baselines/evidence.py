"""Choose the hyper-parameters of a Gaussian process by its evidence.

    log p(y) = -y' C^-1 y / 2 - log |C| / 2 - N log(2 pi) / 2,    C = K + noise^2 I,

is maximised by L-BFGS, from the given hyper-parameters and from random ones around them. The fitted GP is
scikit-learn's, and so is this evidence. Only the gradient is computed differently: the derivative of log p(y) by K,
(C^-1 y y' C^-1 - C^-1) / 2, is pulled back through the kernel, so that no matrix per hyper-parameter is stored.
Everything is in standardised units.

A row that counts w times tells of the function as one row with the noise's variance over w does, and adds a constant
(`repetitions`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor

from metaprior.baselines.scikit_kernel import KernelForScikit
from metaprior.compilation import in_float64
from metaprior.kernels import Scaled
from metaprior.predictive.trials import traced

#: A random start is the first one times the exponential of normals with this standard deviation.
START_SPREAD = 1.0
#: A run ends when the gradient of the evidence (in nats), or its gain in a step, is below these.
GRADIENT_TOLERANCE, VALUE_TOLERANCE = 1e-3, 1e-7
#: The bounds of a learned noise, in standard deviations of the target.
NOISE_BOUNDS = (1e-4, 1e2)
#: The least noise variance on the diagonal, in variances of the target, with which float64 can factorise.
LEAST_DIAGONAL = 1e-10


class Hypers(NamedTuple):
    """The given or learned hyper-parameters of the GP of one target."""

    kernel: Scaled
    noise: float


class Evidence:
    """The log evidence of one target, and its gradient, as a function of theta.

    theta is that of the kernel, followed by the logarithm of the noise if it is learned.
    """

    def __init__(
        self, start: Hypers, x: np.ndarray, y: np.ndarray, *, noise_learned: bool, weight: np.ndarray | None = None
    ) -> None:
        """Keep the data and where the hyper-parameters start; a row counts `weight` times, or once."""
        self.start, self.x, self.y, self.noise_learned = start, x, y, noise_learned
        self.weight = np.ones(len(y)) if weight is None else weight
        kernel, noise = KernelForScikit(start.kernel), [np.log(start.noise)] if noise_learned else []
        self.theta = np.append(kernel.theta, noise)
        self.bounds = np.vstack([kernel.bounds, *[np.log(NOISE_BOUNDS) for _ in noise]])

    def hypers(self, theta: np.ndarray) -> Hypers:
        """Return the hyper-parameters at theta."""
        of_kernel, of_noise = np.split(theta, [len(theta) - self.noise_learned])
        kernel = KernelForScikit(self.start.kernel).clone_with_theta(of_kernel).kernel
        return Hypers(kernel, float(np.exp(of_noise[0])) if self.noise_learned else self.start.noise)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return log p(y) and its gradient, or -inf and zeros if the covariance cannot be factorised."""
        hypers = self.hypers(theta)
        kernel = KernelForScikit(hypers.kernel)
        covariance = kernel(self.x)
        covariance[np.diag_indices_from(covariance)] += _diagonal(hypers) / self.weight
        try:
            factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return -np.inf, np.zeros_like(theta)
        weights = cho_solve((factor, True), self.y, check_finite=False)
        log_root = np.sum(np.log(np.diag(factor)))  # log |C| / 2
        value = -0.5 * self.y @ weights - log_root - 0.5 * len(self.y) * np.log(2 * np.pi)
        slope = _slope(weights, factor)
        # dC / d log noise = 2 noise^2 / weight, on the diagonal
        by_noise = 2 * hypers.noise**2 * np.sum(np.diag(slope) / self.weight) - np.sum(self.weight - 1)
        of_noise = [by_noise] if self.noise_learned else []
        value += repetitions(hypers.noise, self.weight)
        return float(value), np.append(kernel.pulled_back(self.x, slope), of_noise)


def repetitions(noise: float, weight: np.ndarray) -> float:
    """Return what rows add that count w times: -(w - 1) log(2 pi noise^2) / 2 - log(w) / 2, summed over rows."""
    return -0.5 * float(np.sum(weight - 1) * np.log(2 * np.pi * noise**2) + np.sum(np.log(weight)))


def _slope(weights: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return d log p(y) / dC = (w w' - C^-1) / 2, with both triangles summed in the lower one."""
    inverse, _ = dpotri(factor, lower=1)
    slope = np.tril(np.outer(weights, weights) - inverse)
    slope[np.diag_indices_from(slope)] *= 0.5
    return slope


def maximised(evidence: Evidence, *, num_restarts: int, max_iter: int, rng: np.random.Generator) -> tuple[Hypers, int]:
    """Return the hyper-parameters with the highest evidence of all runs, and the number of steps of that run."""
    with in_float64():
        runs = [_climbed(evidence, theta, max_iter) for theta in _starts(evidence, num_restarts, rng)]
    _, theta, num_steps = max(runs, key=lambda run: run[0])
    return evidence.hypers(theta), num_steps


def _starts(evidence: Evidence, num_restarts: int, rng: np.random.Generator) -> np.ndarray:
    """Return the given theta and random ones around it, all inside the bounds."""
    moves = START_SPREAD * rng.standard_normal((1 + num_restarts, len(evidence.theta)))
    moves[0] = 0
    return np.clip(evidence.theta + moves, *evidence.bounds.T)


def _climbed(evidence: Evidence, theta: np.ndarray, max_iter: int) -> tuple[float, np.ndarray, int]:
    """Return the evidence, theta and number of steps of L-BFGS from one start."""

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = evidence(theta)
        return -value / unit, -gradient / unit

    # in these units the first step has at most length 1; in nats it would end at the bounds, where all is noise
    unit = max(1.0, float(np.linalg.norm(evidence(theta)[1])))
    options = {"maxiter": max_iter, "gtol": GRADIENT_TOLERANCE / unit, "ftol": VALUE_TOLERANCE / unit}
    found = minimize(loss, theta, method="L-BFGS-B", jac=True, bounds=evidence.bounds, options=options)
    return -unit * float(found.fun), found.x, int(found.nit)


def conditioned(
    hypers: Hypers,
    x: np.ndarray,
    y: np.ndarray,
    jitters: Sequence[float] = (0.0,),
    weight: np.ndarray | None = None,
) -> GaussianProcessRegressor:
    """Return the GP given the data. Its kernel is that of the function alone, and its `alpha` is the noise variance.

    A row counts `weight` times, or once. `jitters` are added to the diagonal, in fractions of its mean, one after the
    other until it can be factorised.
    """
    kernel = KernelForScikit(hypers.kernel)
    diagonal: Any = _diagonal(hypers) if weight is None else _diagonal(hypers) / weight
    for jitter in jitters:
        added = jitter * float(np.mean(kernel.diag(x))) if jitter else 0.0
        gp = GaussianProcessRegressor(kernel, alpha=diagonal + added, optimizer=None, copy_X_train=False)
        try:
            return gp.fit(x, y)
        except np.linalg.LinAlgError as error:
            failed = error
    raise ValueError(
        f"kernel: the covariance of {len(x)} rows under {kernel!r} cannot be factorised; give a larger `noise`, "
        "a shorter lengthscale, or a kernel that is positive semi-definite."
    ) from failed


def check_kernel(kernel: Scaled, x: np.ndarray) -> None:
    """Raise an error unless the kernel can be computed at these rows, by a trial for shapes alone."""
    cross, diagonal = traced(_trial, kernel, x[:1], x)
    if (cross.shape, diagonal.shape) != ((1, len(x)), (len(x),)):
        raise ValueError("expected a kernel with one value per pair of rows")


@jax.jit
def _trial(kernel: Scaled, one: jax.Array, all_rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    return kernel(one, all_rows), kernel.diagonal(all_rows)


def _diagonal(hypers: Hypers) -> float:
    return max(hypers.noise**2, LEAST_DIAGONAL)
