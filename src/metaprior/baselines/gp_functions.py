"""The posterior functions of fitted Gaussian processes: their moments and joint draws at given rows."""

from typing import Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.gaussian_process import GaussianProcessRegressor

from metaprior.predictive.draws import CHUNK_ROWS
from metaprior.predictive.gaussian import GaussianFunctions

#: The most rows that functions can be drawn at.
MOST_ROWS = 20_000
#: Values to try on the diagonal of a covariance, in fractions of its largest variance, until it can be factorised.
DRAW_JITTERS = (1e-12, 1e-10, 1e-8, 1e-6)


class ExactFunctions(GaussianFunctions):
    """The posterior functions of fitted GPs, one per output, at given standardised rows."""

    def __init__(self, gps: list[GaussianProcessRegressor], x: np.ndarray) -> None:
        """Keep the GPs and the rows. Nothing is computed yet."""
        self.gps, self.x, self.num_rows = gps, x, len(x)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the variance, [N, outputs], computed in chunks of rows."""
        parts = [
            [_moments(gp, self.x[start : start + CHUNK_ROWS]) for start in range(0, self.num_rows, CHUNK_ROWS)]
            for gp in self.gps
        ]
        mean, variance = (np.stack([np.concatenate([c[i] for c in chunks]) for chunks in parts], 1) for i in (0, 1))
        return mean, variance

    def covariance(self) -> np.ndarray:
        """Return the covariance over the rows, [outputs, N, N]."""
        return np.stack([_covariance(gp, self.x, _half(gp, self.x)[1]) for gp in self.gps])

    def at_rows(self, rows: np.ndarray) -> Self:
        """Return the same GPs at some of the rows."""
        return type(self)(self.gps, self.x[rows])

    def draws(self, num_draws: int, seed: int) -> np.ndarray:
        """Return functions drawn jointly over the rows, [S, N, outputs]."""
        if self.num_rows > MOST_ROWS:
            raise ValueError(
                f"draws: expected at most {MOST_ROWS} rows, because functions are drawn jointly over all of them; got "
                f"{self.num_rows}: draw at fewer rows."
            )
        rng = np.random.default_rng(seed)
        return np.stack([_joint_draws(gp, self.x, rng.standard_normal((num_draws, len(self.x)))) for gp in self.gps], 2)


def _half(gp: GaussianProcessRegressor, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return k(x, X) and L^-1 k(X, x), where L L' = k(X, X) + noise^2 I."""
    cross = gp.kernel_(x, gp.X_train_)
    return cross, solve_triangular(gp.L_, cross.T, lower=True, check_finite=False)


def _moments(gp: GaussianProcessRegressor, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return k(x, X) (L L')^-1 y and k(x, x) - |L^-1 k(X, x)|^2."""
    cross, half = _half(gp, x)
    return cross @ gp.alpha_, np.maximum(gp.kernel_.diag(x) - np.sum(half**2, axis=0), 0.0)


def _joint_draws(gp: GaussianProcessRegressor, x: np.ndarray, normals: np.ndarray) -> np.ndarray:
    """Return mean + R n, where R R' is the posterior covariance of the rows."""
    cross, half = _half(gp, x)
    return cross @ gp.alpha_ + normals @ _root(_covariance(gp, x, half)).T


def _covariance(gp: GaussianProcessRegressor, x: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Return k(x, x') - half' half."""
    return gp.kernel_(x) - half.T @ half


def _root(covariance: np.ndarray) -> np.ndarray:
    """Return a root of a covariance: a Cholesky factor if there is one, else by eigenvalues cut off at 0."""
    largest = float(np.max(np.diag(covariance), initial=1e-300))
    for jitter in DRAW_JITTERS:
        try:
            return np.linalg.cholesky(covariance + jitter * largest * np.eye(len(covariance)))
        except np.linalg.LinAlgError:
            continue
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0))
