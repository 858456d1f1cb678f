"""The period of the data, from their spectrum: a least-squares periodogram for rows at any places.

The likelihood of a period is multi-modal, and gradient descent from a wrong start stays there. At every frequency of
a fine grid the targets are fitted by a constant, a slope, a sine and a cosine; the frequency that explains most wins.
"""

import numpy as np

#: Grid points for one peak's width, and rows that are looked at.
OVERSAMPLING = 8
MAX_ROWS = 2000
MAX_FREQUENCIES = 20000


def starting_periods(x: np.ndarray, y: np.ndarray, peak: int = 0) -> np.ndarray:
    """Return, for every column of x, the period that explains most of y's variance.

    `peak` 1 is the next best of the spectrum's peaks, and so on; where there are fewer, the last.
    Cost N (N + range) a column; at most `MAX_ROWS` rows, evenly chosen, are used.
    """
    keep = np.linspace(0, len(x) - 1, min(len(x), MAX_ROWS)).astype(int)
    return np.array([_starting_period(column, y[keep], peak) for column in x[keep].T])


def _starting_period(x: np.ndarray, y: np.ndarray, peak: int) -> float:
    spread = np.ptp(x)
    distinct = len(np.unique(x))
    if spread == 0 or distinct < 4:
        return max(float(spread), 1.0)
    # from one turn over the data to half a turn a (mean) gap between neighbours
    lowest, highest = 1.0 / spread, 0.5 * (distinct - 1) / spread
    count = min(int(OVERSAMPLING * (highest - lowest) * spread) + 2, MAX_FREQUENCIES)
    frequencies = np.linspace(lowest, max(highest, 2 * lowest), count)
    power = _power(x, y, frequencies)
    peaks = _peaks(power)
    best = int(peaks[min(peak, len(peaks) - 1)])
    if 0 < best < count - 1:  # the vertex of the parabola through the peak and its neighbours
        left, middle, right = power[best - 1 : best + 2]
        curvature = left - 2 * middle + right
        shift = 0.5 * (left - right) / curvature if curvature < 0 else 0.0
        return 1.0 / (frequencies[best] + shift * (frequencies[1] - frequencies[0]))
    return 1.0 / frequencies[best]


def _peaks(power: np.ndarray) -> np.ndarray:
    """Return the places of the local maxima (the ends among them), highest first."""
    walled = np.concatenate([[-np.inf], power, [-np.inf]])
    places = np.flatnonzero((power >= walled[:-2]) & (power > walled[2:]))
    return places[np.argsort(-power[places], kind="stable")]


def _power(x: np.ndarray, y: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """Return the sum of squares that sine and cosine explain beyond a constant and a slope."""
    line = np.column_stack([np.ones_like(x), x - x.mean()])
    basis, _ = np.linalg.qr(line)
    residual = y - basis @ (basis.T @ y)
    power = np.empty(len(frequencies))
    for start in range(0, len(frequencies), 256):
        angle = 2 * np.pi * np.outer(frequencies[start : start + 256], x)
        waves = np.stack([np.cos(angle), np.sin(angle)], axis=2)  # [f, N, 2]
        waves -= basis @ (basis.T @ waves)
        gram = np.swapaxes(waves, 1, 2) @ waves + 1e-9 * len(x) * np.eye(2)
        projected = np.swapaxes(waves, 1, 2) @ residual
        power[start : start + 256] = np.sum(projected * np.linalg.solve(gram, projected), axis=(1, 2))
    return power
