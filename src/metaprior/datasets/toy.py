"""The paper's toy problems. What its text leaves open is chosen here, written down and kept fixed."""

from typing import NamedTuple

import numpy as np


class Split(NamedTuple):
    """Inputs and targets of one part of a data set."""

    X: np.ndarray
    y: np.ndarray


def sinusoid(seed: int, *, num_train: int = 100, num_test: int = 500) -> dict[str, Split]:
    """Return y = sin(2 pi 0.6 x) + 0.1 noise: `train` and `inside` on [-2, 2], `outside` on [-4, -2] and [2, 4]."""
    rng = np.random.default_rng(seed)

    def observed(x: np.ndarray) -> Split:
        return Split(x[:, None], np.sin(2 * np.pi * 0.6 * x) + 0.1 * rng.standard_normal(len(x)))

    train, inside = observed(rng.uniform(-2, 2, num_train)), observed(rng.uniform(-2, 2, num_test))
    side = rng.choice([-1.0, 1.0], num_test)
    return {"train": train, "inside": inside, "outside": observed(side * rng.uniform(2, 4, num_test))}


def four_class(num_rows: int = 100, seed: int = 0) -> Split:
    """Return the four-class problem in the plane, `num_rows` / 4 rows a class (legacy NumPy generator)."""
    rng, each = np.random.RandomState(seed), num_rows // 4

    def pair(mean: tuple[float, float], slope: tuple[float, float]) -> np.ndarray:
        first = mean[0] + slope[0] * rng.randn(each)
        return np.column_stack([first, mean[1] + slope[1] * rng.randn(each)])

    classes = [
        pair((0.8, 1.5), (0.4, 0.4)),
        pair((0.5, -0.2), (0.6, -0.1)),
        pair((2.5, 1.0), (-0.1, 0.6)),
        rng.multivariate_normal([-0.5, 1.5], [[0.2, 0.1], [0.1, 0.1]], each),
    ]
    return Split(np.concatenate(classes) - np.array([0.5, 1.0]), np.repeat(np.arange(4), each))
