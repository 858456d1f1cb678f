"""The domain of an optimisation: a box, with its map to the unit cube and points spread over it."""

from typing import Any

import numpy as np
from scipy.stats import qmc


class Box:
    """All x with low <= x <= high.

    Parameters
    ----------
    bounds : array-like of shape (n_dimensions, 2)
        The lowest and the highest value of every variable.
    """

    def __init__(self, bounds: Any) -> None:
        array = np.array(bounds, np.float64)
        right = array.ndim == 2 and array.shape[1:] == (2,) and len(array) > 0
        if not (right and np.all(np.isfinite(array)) and np.all(array[:, 0] < array[:, 1])):
            raise ValueError(f"bounds: expected a pair (low, high), low < high, for every variable; got {bounds!r}.")
        self.bounds = array
        self.low, self.high = array.T
        self.n_dimensions = len(array)

    def from_unit(self, u: np.ndarray) -> np.ndarray:
        """Return the points of the box for points of the unit cube."""
        return np.clip(self.low + (self.high - self.low) * u, self.low, self.high)

    def to_unit(self, X: np.ndarray) -> np.ndarray:
        """Return the points of the unit cube for points of the box."""
        return (X - self.low) / (self.high - self.low)

    def spread(self, count: int, seed: int, start: int = 0) -> np.ndarray:
        """Return points `start` to `start + count` of the scrambled Sobol sequence of a seed."""
        size = max(start + count - 1, 0).bit_length()  # the sequence is balanced in powers of two
        points = qmc.Sobol(self.n_dimensions, scramble=True, seed=seed).random_base2(size)
        return self.from_unit(points[start : start + count])

    def around(self, x: np.ndarray, radii: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a random point of the box near x for every radius, in fractions of the box's sides."""
        moves = radii[:, None] * rng.standard_normal((len(radii), self.n_dimensions))
        return self.from_unit(np.clip(self.to_unit(x) + moves, 0, 1))

    def checked(self, X: Any, name: str) -> np.ndarray:
        """Return points as rows [n, n_dimensions], or raise an error if one is outside the box."""
        rows = np.asarray(X, np.float64)
        rows = rows[None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or rows.shape[1] != self.n_dimensions:
            raise ValueError(f"{name}: expected rows of {self.n_dimensions} numbers; got shape {np.shape(X)}.")
        room = 1e-9 * (self.high - self.low)
        outside = ~np.all((rows >= self.low - room) & (rows <= self.high + room), axis=1)
        if outside.any():
            raise ValueError(f"{name}: expected points in the box {self.bounds.tolist()}; got {rows[outside][0]}.")
        return rows
