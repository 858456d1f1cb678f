"""Least squares of waves beside a slow trend: how much better the targets are explained by a frequency."""

import numpy as np

from metaprior.periods.evidence import evidence_of_waves
from metaprior.periods.transforms import OVERSAMPLING, explained_by_waves, transforms

#: Turns over the data from which on a wave is no trend.
FEWEST_TURNS = 3.0
#: The degree of a slow trend. It leaves 1 % of a wave of two and a half turns, a third of one of three and a half, and
#: a part in 1e10 of exponential growth by a factor of 400.
DEGREE = 9
#: The numbers of waves that are tried: a frequency and its multiples.
WAVES = (1, 2, 3, 5)
#: Steps of the search for the top of a peak.
REFINING = 16


def line(turns: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of straight lines times the roots of the rows' weights, [N, 2]."""
    return np.linalg.qr(root[:, None] * np.column_stack([np.ones_like(turns), turns]))[0]


def slow_trend(turns: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of what turns less than about three times: polynomials, times these roots.

    Few rows have a shorter basis: one function for every five of them.
    """
    degree = min(DEGREE, max(2, len(turns) // 5) - 1)
    return np.linalg.qr(root[:, None] * np.polynomial.legendre.legvander(2 * turns - 1, degree))[0]


class Waves:
    """Rows at `turns` between 0 and 1, the basis of a trend [N, T], and what the trend leaves of the targets [N, P].

    A frequency is a number of turns over the data. `num_free` is the number of rows less that of the trend's functions.
    Rows count by their weights, of which `root` are the roots: they multiply y, the trend and the waves.
    """

    def __init__(self, turns: np.ndarray, y: np.ndarray, trend: np.ndarray, root: np.ndarray) -> None:
        self.turns, self.trend, self.root = turns, trend, root
        weighted = root[:, None] * y
        self.y = weighted - trend @ (trend.T @ weighted)
        self.totals = np.sum(self.y**2, axis=0)
        self.num_rows = float(np.sum(root**2))
        self.num_free = self.num_rows - trend.shape[1]

    def gains(self, numbers: np.ndarray, highest: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the best gain at frequencies of the grid, given by their numbers, and how many waves it takes."""
        columns = self.root[:, None] * np.column_stack([self.root, self.trend, self.y])
        sums = transforms(self.turns, columns, highest)
        found = np.full((len(WAVES), len(numbers)), -np.inf)
        for row, count in enumerate(WAVES):
            chosen = np.flatnonzero((numbers * count <= highest * OVERSAMPLING) | (count == 1))
            if len(chosen) and self.num_free > 2 * count:
                explained = explained_by_waves(sums, numbers[chosen], count, self.trend.shape[1])
                found[row, chosen] = self._gain(explained, count)
        best = np.argmax(found, axis=0)
        return found[best, np.arange(len(numbers))], np.array(WAVES)[best]

    def gain(self, frequencies: np.ndarray) -> float:
        """Return the gain of waves with these frequencies, from the rows themselves. Cost N K^2."""
        count = len(frequencies)
        if self.num_free <= 2 * count:
            return -np.inf
        gram, projected = self._products(frequencies)
        gram += 1e-9 * self.num_rows * np.eye(2 * count)
        return float(self._gain(np.sum(projected * np.linalg.solve(gram, projected), axis=0), count))

    def evidence(self, frequency: float, k: np.ndarray, shift: np.ndarray | float = 0.0) -> float:
        """Return by how many nats a Gaussian process with these multiples of a frequency beats none.

        `shift` moves the multiples, in frequencies, but not their variances. Cost N K^2 + K^3.
        """
        if self.num_free < 2:
            return -np.inf
        return evidence_of_waves(k, *self._products(frequency * (k + shift)), self.totals, self.num_free)

    def refined(self, frequency: float, count: int) -> float:
        """Return where so many waves have their highest gain near a frequency, by golden sections."""
        k = np.arange(1, count + 1)
        low, high = frequency - 1 / OVERSAMPLING / count, frequency + 1 / OVERSAMPLING / count
        ratio = 0.5 * (np.sqrt(5) - 1)
        places = [high - ratio * (high - low), low + ratio * (high - low)]
        gains = [self.gain(place * k) for place in places]
        for _ in range(REFINING):
            lower = int(gains[0] < gains[1])  # the end next to the lower gain moves
            low, high = (places[0], high) if lower else (low, places[1])
            places[1 - lower], gains[1 - lower] = places[lower], gains[lower]
            places[lower] = low + ratio * (high - low) if lower else high - ratio * (high - low)
            gains[lower] = self.gain(places[lower] * k)
        return float(places[int(gains[1] > gains[0])])

    def _gain(self, explained: np.ndarray, count: int) -> np.ndarray:
        """Return the gain of waves that explain so much of every target's sum of squares, [..., P]."""
        num_rows, total = self.num_rows, self.totals + 1e-300
        left = np.maximum(total - explained, 1e-9 * total)
        return 0.5 * num_rows * np.sum(np.log(total / left), axis=-1) - count * np.log(num_rows)

    def _products(self, frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the products of the waves beside the trend with each other and with the targets."""
        angle = 2 * np.pi * np.outer(self.turns, frequencies)
        waves = self.root[:, None] * np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
        waves -= self.trend @ (self.trend.T @ waves)
        return waves.T @ waves, waves.T @ self.y
