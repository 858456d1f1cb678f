"""A small problem for examples and first steps. The data sets of the paper are in the reproduction package."""

from typing import NamedTuple

import numpy as np


class Split(NamedTuple):
    """The inputs and targets of one part of a data set."""

    X: np.ndarray
    y: np.ndarray


def sinusoid(seed: int, *, num_train: int = 100, num_test: int = 500, frequency: float = 0.6) -> dict[str, Split]:
    """Return y = sin(2 pi frequency x) + 0.1 noise: `train`, `inside` on [-2, 2], `outside` on [-4, -2] and [2, 4]."""
    rng = np.random.default_rng(seed)

    def observed(x: np.ndarray) -> Split:
        return Split(x[:, None], np.sin(2 * np.pi * frequency * x) + 0.1 * rng.standard_normal(len(x)))

    train, inside = observed(rng.uniform(-2, 2, num_train)), observed(rng.uniform(-2, 2, num_test))
    side = rng.choice([-1.0, 1.0], num_test)
    return {"train": train, "inside": inside, "outside": observed(side * rng.uniform(2, 4, num_test))}
