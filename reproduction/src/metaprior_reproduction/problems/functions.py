"""Functions to minimise whose lowest value is known: Branin, Hartmann-6, Levy in 20 dimensions and a periodic one."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Objective:
    """A function of an array [num_dimensions], its box, and its lowest value in the box."""

    function: Callable[[np.ndarray], float]
    bounds: tuple[tuple[float, float], ...]
    lowest: float

    def __call__(self, x: np.ndarray) -> float:
        """Return the value at a point."""
        return float(self.function(np.asarray(x, np.float64)))


def _branin(x: np.ndarray) -> float:
    # (x2 - b x1^2 + c x1 - 6)^2 + 10 (1 - t) cos(x1) + 10
    b, c, t = 5.1 / (4 * np.pi**2), 5 / np.pi, 1 / (8 * np.pi)
    return (x[1] - b * x[0] ** 2 + c * x[0] - 6) ** 2 + 10 * (1 - t) * np.cos(x[0]) + 10


_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def _hartmann6(x: np.ndarray) -> float:
    # -sum_i alpha_i exp(-sum_d A_id (x_d - P_id)^2)
    return -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-np.sum(_A * (x - _P) ** 2, axis=1)))


def _levy(x: np.ndarray) -> float:
    # w = 1 + (x - 1) / 4
    # sin^2(pi w_1) + sum_d (w_d - 1)^2 (1 + 10 sin^2(pi w_d + 1)) + (w_D - 1)^2 (1 + sin^2(2 pi w_D))
    w = 1 + (x - 1) / 4
    inner = np.sum((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2))
    return float(np.sin(np.pi * w[0]) ** 2 + inner + (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2))


#: The position of one well of `ripples`, and the periods with which it repeats.
WELL, PERIOD = (0.4, 1.1), (1.3, 1.9)


def _ripples(x: np.ndarray) -> float:
    # 1 - exp(2 (cos(2 pi (x1 - a1) / p1) + cos(2 pi (x2 - a2) / p2) - 2)): narrow wells, the same in every period
    turns = 2 * np.pi * (x - np.array(WELL)) / np.array(PERIOD)
    return 1 - np.exp(2 * np.sum(np.cos(turns) - 1))


#: Three wells, values from 0.4 to 308.
BRANIN = Objective(_branin, ((-5.0, 10.0), (0.0, 15.0)), 0.39788735772973816)
#: Six local minima in six dimensions.
HARTMANN6 = Objective(_hartmann6, ((0.0, 1.0),) * 6, -3.322368011391339)
#: Many local minima in twenty dimensions, all of which matter; the lowest value is at (1, ..., 1).
LEVY20 = Objective(_levy, ((-10.0, 10.0),) * 20, 0.0)
#: 1200 equal wells, forty periods by thirty: a model that does not know the periods has little to go on.
RIPPLES = Objective(_ripples, ((0.0, 52.0), (0.0, 57.0)), 0.0)
