"""Base kernels in NumPy: the matrix between rows, and the gradient of a sum over the matrix by the hyper-parameters.

Every function takes the rows and the logarithms of the hyper-parameters, in standardised units. It returns the matrix
K [N, N], and a function that pulls a slope S [N, N] back to sum_nm S_nm dK_nm / dtheta.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from metaprior import kernels
from metaprior.kernels.base import Kernel

Pull = Callable[[np.ndarray], np.ndarray]
#: A matrix, and the gradient that a slope by it has.
Evaluated = tuple[np.ndarray, Pull]


class Rows:
    """Standardised inputs, and what pairs of rows have in common."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    @cached_property
    def distance(self) -> list[np.ndarray]:
        """|x_n - x_m| for every column."""
        return [np.abs(column[:, None] - column) for column in self.x.T]

    @cached_property
    def squared(self) -> list[np.ndarray]:
        """(x_n - x_m)^2 for every column."""
        return [each**2 for each in self.distance]

    @cached_property
    def product(self) -> list[np.ndarray]:
        """x_n x_m for every column."""
        return [np.outer(column, column) for column in self.x.T]


# --- formulas -------------------------------------------------------------------------


def _rbf(rows: Rows, columns: Sequence[int], theta: np.ndarray) -> Evaluated:
    """exp(-r^2 / 2), with one lengthscale per column."""
    parts = [rows.squared[column] * np.exp(-2 * log) for column, log in zip(columns, theta, strict=True)]
    k = np.exp(-0.5 * sum(parts[1:], parts[0]))
    return k, lambda slope: np.array([np.vdot(slope * k, part) for part in parts])


def _matern12(rows: Rows, columns: Sequence[int], theta: np.ndarray) -> Evaluated:
    """exp(-r)."""
    r = rows.distance[columns[0]] * np.exp(-theta[0])
    k = np.exp(-r)
    return k, lambda slope: np.array([np.vdot(slope * k, r)])


def _matern32(rows: Rows, columns: Sequence[int], theta: np.ndarray) -> Evaluated:
    """(1 + s) exp(-s), s = sqrt(3) r."""
    s = rows.distance[columns[0]] * (np.sqrt(3) * np.exp(-theta[0]))
    falling = np.exp(-s)
    return (1 + s) * falling, lambda slope: np.array([np.vdot(slope * falling, s * s)])


def _matern52(rows: Rows, columns: Sequence[int], theta: np.ndarray) -> Evaluated:
    """(1 + s + s^2 / 3) exp(-s), s = sqrt(5) r."""
    s = rows.distance[columns[0]] * (np.sqrt(5) * np.exp(-theta[0]))
    falling = np.exp(-s)
    pull = lambda slope: np.array([np.vdot(slope * falling, s * s * (1 + s) / 3)])  # noqa: E731
    return (1 + s + s * s / 3) * falling, pull


def _rational_quadratic(rows: Rows, columns: Sequence[int], theta: np.ndarray) -> Evaluated:
    """(1 + r^2 / 2 alpha)^-alpha."""
    alpha = np.exp(theta[1])
    part = rows.squared[columns[0]] * (np.exp(-2 * theta[0]) / (2 * alpha))
    log_base = np.log1p(part)
    k = np.exp(-alpha * log_base)

    def pull(slope: np.ndarray) -> np.ndarray:
        share, weighed = part / (1 + part), alpha * slope * k
        return np.array([2 * np.vdot(weighed, share), np.vdot(weighed, share - log_base)])

    return k, pull


def _periodic(rows: Rows, columns: Sequence[int], theta: np.ndarray) -> Evaluated:
    """exp(-2 sin^2(pi d / period) / lengthscale^2)."""
    angle = rows.distance[columns[0]] * (np.pi * np.exp(-theta[0]))
    precision = np.exp(-2 * theta[1])
    part = 2 * precision * np.sin(angle) ** 2
    k = np.exp(-part)

    def pull(slope: np.ndarray) -> np.ndarray:
        weighed = slope * k
        return np.array([2 * precision * np.vdot(weighed, np.sin(2 * angle) * angle), 2 * np.vdot(weighed, part)])

    return k, pull


def _linear(rows: Rows, columns: Sequence[int], theta: np.ndarray) -> Evaluated:
    """Lines through the middle of the data, x x'. As a factor: a size that is proportional to x."""
    return rows.product[columns[0]], lambda slope: np.zeros(0)


def _growth(rows: Rows, columns: Sequence[int], theta: np.ndarray) -> Evaluated:
    """1 + w x x': a factor, for a size that changes along a line."""
    k = np.exp(theta[0]) * rows.product[columns[0]]
    return 1 + k, lambda slope: np.array([np.vdot(slope, k)])


FORMULAS: dict[str, Callable[[Rows, Sequence[int], np.ndarray], Evaluated]] = {
    "rbf": _rbf,
    "matern12": _matern12,
    "matern32": _matern32,
    "matern52": _matern52,
    "rational_quadratic": _rational_quadratic,
    "periodic": _periodic,
    "linear": _linear,
    "growth": _growth,
}
#: Base kernels of a distance: in a product over the same columns one of them is enough.
STATIONARY = {"rbf", "matern12", "matern32", "matern52", "rational_quadratic"}
#: Base kernels that stand for a component by themselves; `growth` is a factor only.
NAMES = tuple(name for name in FORMULAS if name != "growth")

#: Bounds of the logarithm of a lengthscale: a longer one is a line or a parabola, which have kernels of their own.
LENGTHS = (np.log(0.01), np.log(8.0))
#: Bounds of the logarithms of alpha, of the lengthscale on the circle, of the weight of growth; and how far a period
#: may move from where it starts, because its likelihood has many modes.
ALPHAS, CIRCLES, WEIGHTS, PERIOD_MOVES = np.log((0.05, 20)), np.log((0.1, 5)), np.log((1e-3, 1e3)), 0.2


#: The kernels that have nothing but lengthscales.
_BY_LENGTH: dict[str, Callable[[float | list[float]], Kernel]] = {
    "rbf": kernels.RBF,
    "matern12": kernels.Matern12,
    "matern32": kernels.Matern32,
    "matern52": kernels.Matern52,
}


class Base(NamedTuple):
    """A base kernel on some columns."""

    name: str
    columns: tuple[int, ...]

    def evaluated(self, rows: Rows, theta: np.ndarray) -> Evaluated:
        """Return the matrix between the rows and how slopes are pulled back."""
        return FORMULAS[self.name](rows, self.columns, theta)

    @property
    def num_hypers(self) -> int:
        """The number of hyper-parameters."""
        sizes = {"linear": 0, "periodic": 2, "rational_quadratic": 2, "rbf": len(self.columns)}
        return sizes.get(self.name, 1)

    def bounds(self, theta: np.ndarray) -> list[tuple[float, float]]:
        """Return the lowest and highest hyper-parameters of a run that starts at theta."""
        if self.name == "periodic":
            return [(theta[0] - PERIOD_MOVES, theta[0] + PERIOD_MOVES), tuple(CIRCLES)]
        pairs = {"linear": [], "growth": [tuple(WEIGHTS)], "rational_quadratic": [LENGTHS, tuple(ALPHAS)]}
        return pairs.get(self.name, [LENGTHS] * self.num_hypers)

    def kernel(self, theta: np.ndarray, scale: np.ndarray) -> Kernel:
        """Return the kernel for inputs whose columns have been divided by `scale`; it does not know its columns."""
        value, unit = np.exp(theta), scale[list(self.columns)]
        if self.name == "linear":
            return kernels.Linear(float(unit[0] ** -2))
        if self.name == "growth":
            return kernels.Constant(1.0) + kernels.Linear(float(value[0] / unit[0] ** 2))
        if self.name == "periodic":
            return kernels.Periodic(float(value[0] * unit[0]), float(value[1]))
        if self.name == "rational_quadratic":
            return kernels.RationalQuadratic(float(value[0] * unit[0]), float(value[1]))
        lengths = [float(each) for each in value * unit]
        return _BY_LENGTH[self.name](lengths[0] if len(lengths) == 1 else lengths)
