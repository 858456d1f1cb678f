"""The paper's toy problems. What its text leaves open is chosen, documented and kept fixed here."""

import numpy as np

from metaprior.datasets import Split


def four_class(num_rows: int = 100, seed: int = 0) -> Split:
    """Return the four-class problem in the plane, with `num_rows` / 4 rows per class (legacy NumPy generator)."""
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


def fnp(seed: int = 1) -> dict[str, Split]:
    """Return the function of the functional neural process paper: 20 noisy rows and the function on a grid.

    Returns
    -------
    dict of Split
        `train`: 12 x uniform on [0, 0.6], then 8 on [0.8, 1]; y = x + sin(4 (x + eps)) + sin(13 (x + eps)) + eps with
        eps of standard deviation 0.03 (legacy NumPy generator). `grid`: 500 x on [-1, 2], y without noise. Both are in
        the units of the formula; the paper standardises them, as the estimators do by themselves.
    """
    rng = np.random.RandomState(seed)
    x = np.concatenate([rng.uniform(0, 0.6, 12), rng.uniform(0.8, 1.0, 8)])
    grid = np.linspace(-1, 2, 500)

    def values(x: np.ndarray, eps: np.ndarray | float) -> np.ndarray:
        return x + np.sin(4 * (x + eps)) + np.sin(13 * (x + eps)) + eps

    train = Split(x[:, None], values(x, rng.normal(0, 0.03, 20)))
    return {"train": train, "grid": Split(grid[:, None], values(grid, 0.0))}


def x_sin_x(num_rows: int, seed: int) -> dict[str, Split]:
    """Return y = x sin(x) + 0.5 noise on [0, 10] as `train`, and without noise on 500 x of [-5, 15] as `grid`.

    The first rows of a longer set are those of a shorter one with the same seed. Range and noise are not in the paper.
    """
    x = np.random.default_rng([seed, 0]).uniform(0, 10, num_rows)
    noise = 0.5 * np.random.default_rng([seed, 1]).standard_normal(num_rows)
    grid = np.linspace(-5, 15, 500)
    return {
        "train": Split(x[:, None], x * np.sin(x) + noise),
        "grid": Split(grid[:, None], grid * np.sin(grid)),
    }
