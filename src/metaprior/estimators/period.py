"""The periods of the data, from their spectrum: least squares of waves with harmonics, beside a slow trend.

The likelihood of a period is multi-modal, and gradient descent from a wrong start stays there. At every frequency of a
fine grid the targets are fitted by a trend and by waves of this frequency and its multiples. A frequency scores

    N / 2 log(RSS of the trend / RSS with K waves) - K log N,

the gain in log likelihood less the price of its 2 K coefficients (BIC), with the best number of waves K. The trend is
every function that turns less than three times over the data, so a curved trend is no period; a wave with fewer turns
counts only where no other stands out. The sums over rows come from fast Fourier transforms of the rows spread over a
fine grid; the best frequencies are then refined on the rows themselves. Cost N log N per column.
"""

from typing import NamedTuple

import numpy as np

#: Rows that are looked at, chosen at random beyond that: a regular choice would alias short periods.
MAX_ROWS = 6_000
#: Frequencies for each turn over the data, and cells of the grid for the shortest period.
OVERSAMPLING, CELLS = 8, 16
#: Turns over the data from which on a wave is no trend, and from which on one is looked for at all.
FEWEST_TURNS, LEAST_TURNS = 3.0, 1.0
#: The numbers of waves that are tried: a frequency and its multiples.
WAVES = (1, 2, 3, 5)
#: The most waves of a period that is a multiple of the one found.
MOST_WAVES = 24
#: Periods that are refined, and steps of the refinement.
MOST_PERIODS, REFINING = 6, 16
#: How much more the further waves of a long period must say than waves beside them do: what is spread over many
#: frequencies is no period.
STANDS_OUT = 2.0
#: The degree of the polynomials that a slow trend has beside its cosines: enough for exponential growth.
DEGREE = 6


class Periods(NamedTuple):
    """Periods of a column, the best first, and by how many nats each beats the trend alone."""

    period: np.ndarray
    gain: np.ndarray


def starting_periods(x: np.ndarray, y: np.ndarray, peak: int = 0, weight: np.ndarray | None = None) -> np.ndarray:
    """Return, for every column of x, the period that explains y best.

    `peak` 1 is the next best, and so on; where there are fewer, the last. A row counts `weight` times; None: once.
    """
    found = [periods_of(column, y, weight).period for column in x.T]
    return np.array([each[min(peak, len(each) - 1)] for each in found])


def periods_of(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Periods:
    """Return the periods of targets y [N, P] in one column x [N], the best first; at least one, whatever the data."""
    keep = np.sort(np.random.default_rng(0).permutation(len(x))[:MAX_ROWS])
    x, y = x[keep], y[keep]
    weight = np.ones(len(x)) if weight is None else weight[keep]
    spread, distinct = np.ptp(x), np.unique(x)
    if spread == 0 or len(distinct) < 4 or not np.any(np.ptp(y, axis=0) > 0):
        return Periods(np.array([float(spread) or 1.0]), np.zeros(1))
    turns = (x - x.min()) / spread  # from 0 to 1: a frequency is a number of turns over the data
    fastest = max(0.5 / np.quantile(np.diff(distinct) / spread, 0.25), 2 * LEAST_TURNS)
    fastest = min(fastest, 0.5 * MAX_ROWS)
    y = (y - y.mean(axis=0)) / np.maximum(y.std(axis=0), 1e-300)
    root = np.sqrt(weight)
    fast, slow = _Waves(turns, y, _slow_trend(turns, root), root), _Waves(turns, y, _line(turns, root), root)
    frequency, gain = fast.peaks(FEWEST_TURNS, fastest)
    stands_out = gain > np.log(OVERSAMPLING * fastest)  # as many frequencies were tried
    few, few_gain = slow.peaks(LEAST_TURNS, min(FEWEST_TURNS, fastest))
    order = np.concatenate([frequency[stands_out], few, frequency[~stands_out]])
    gains = np.concatenate([gain[stands_out], few_gain, gain[~stands_out]])
    kept = _different(order)
    if not len(kept):
        return Periods(np.array([float(spread)]), np.zeros(1))
    return Periods(spread / order[kept], gains[kept])


def _different(frequency: np.ndarray) -> np.ndarray:
    """Return the places of frequencies that no earlier one is equal to, within a quarter of a turn over the data."""
    gaps = np.abs(frequency[:, None] - frequency)
    return np.flatnonzero([not np.any(gaps[place, :place] < 0.25) for place in range(len(frequency))])


def _line(turns: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of straight lines times the roots of the weights, [N, 2]."""
    return np.linalg.qr(root[:, None] * np.column_stack([np.ones_like(turns), turns]))[0]


def _slow_trend(turns: np.ndarray, root: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of functions with fewer than three turns: cosines of half turns, and polynomials.

    Few rows have a shorter basis: one function for every five of them.
    """
    halves = np.cos(np.pi * np.outer(turns, np.arange(1, 2 * FEWEST_TURNS)))
    columns = [np.polynomial.legendre.legvander(2 * turns - 1, DEGREE), halves]
    most = max(2, len(turns) // 5)
    weighted = root[:, None] * np.concatenate(columns, axis=1)[:, :most]
    basis, sizes, _ = np.linalg.svd(weighted, full_matrices=False)
    return basis[:, sizes > 1e-10 * sizes[0]]


class _Waves:
    """Least squares of waves beside a trend, at many frequencies; y is what the trend leaves.

    Rows count by their weights: y, the trend and the waves are all multiplied by the roots of these.
    """

    def __init__(self, turns: np.ndarray, y: np.ndarray, trend: np.ndarray, root: np.ndarray) -> None:
        self.turns, self.trend, self.root, self.total = turns, trend, root, float(np.sum(root**2))
        y = root[:, None] * y
        self.y = y - trend @ (trend.T @ y)

    def peaks(self, lowest: float, highest: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the best frequencies between two, refined, with their gains, the best first."""
        numbers = np.arange(int(np.ceil(lowest * OVERSAMPLING)), int(highest * OVERSAMPLING) + 1)
        if not len(numbers):
            return np.zeros(0), np.zeros(0)
        gains, waves = self._gains(numbers, highest)
        walled = np.concatenate([[-np.inf], gains, [-np.inf]])
        places = np.flatnonzero((gains >= walled[:-2]) & (gains > walled[2:]))
        places = places[np.argsort(-gains[places], kind="stable")[:MOST_PERIODS]]
        refined = [self._refined(numbers[place] / OVERSAMPLING, waves[place], lowest, highest) for place in places]
        refined.sort(key=lambda each: -each[1])
        return np.array([each[0] for each in refined]), np.array([each[1] for each in refined])

    def _gains(self, numbers: np.ndarray, highest: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the best gain at each frequency of the grid, and the number of waves that it takes."""
        sums = _transforms(self.turns, self.root[:, None] * np.column_stack([self.root, self.trend, self.y]), highest)
        found = np.full((len(WAVES), len(numbers)), -np.inf)
        for row, count in enumerate(WAVES):
            inside = count == 1 or numbers * count <= highest * OVERSAMPLING
            chosen = np.flatnonzero(inside & np.ones(len(numbers), bool))
            if len(chosen) and len(self.turns) > self.trend.shape[1] + 2 * count:
                found[row, chosen] = self._gain(_explained(sums, numbers[chosen], count, self.trend.shape[1]), count)
        best = np.argmax(found, axis=0)
        return found[best, np.arange(len(numbers))], np.array(WAVES)[best]

    def _gain(self, explained: np.ndarray, count: int) -> np.ndarray:
        """Return the gain of waves that explain so much of every target's sum of squares, [..., P]."""
        total, num_rows = np.sum(self.y**2, axis=0), self.total
        left = np.maximum(total - explained, 1e-9 * total + 1e-300)
        return 0.5 * num_rows * np.sum(np.log((total + 1e-300) / left), axis=-1) - count * np.log(num_rows)

    def _exact_gain(self, frequencies: np.ndarray) -> float:
        """Return the gain of waves with these frequencies, from the rows themselves. Cost N K^2."""
        count = len(frequencies)
        if len(self.turns) <= self.trend.shape[1] + 2 * count:
            return -np.inf
        angle = 2 * np.pi * np.outer(self.turns, frequencies)
        waves = self.root[:, None] * np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
        waves -= self.trend @ (self.trend.T @ waves)
        gram = waves.T @ waves + 1e-9 * self.total * np.eye(2 * count)
        projected = waves.T @ self.y
        explained = np.sum(projected * np.linalg.solve(gram, projected), axis=0)
        return float(self._gain(explained, count))

    def _refined(self, frequency: float, count: int, lowest: float, highest: float) -> tuple[float, float]:
        """Return the frequency with the highest gain nearby, or a part or a multiple of it that says it better."""
        best = self._nearby(frequency, count)
        for part in (2, 3):
            slower, waves = best[0] / part, part * best[2]
            if slower >= lowest and waves <= MOST_WAVES and waves * slower <= highest:
                best = max(best, self._nearby(slower, waves), key=lambda each: each[1])
        for times in range(best[2], 1, -1):
            if best[2] >= times and self._is_spread(best[0], best[2], times):
                best = self._nearby(best[0] * times, best[2] // times)
        return best[0], best[1]

    def _is_spread(self, frequency: float, count: int, times: int) -> bool:
        """Return whether the waves that are no multiples of `times` say little more than waves beside them would.

        Of three or more such waves the one that says most is left out: it may be the wave of another period.
        """
        k = np.arange(1, count + 1)
        core, others = frequency * k[k % times == 0], frequency * k[k % times != 0]
        known = self._exact_gain(core)
        if len(others) >= 3:
            alone = [self._exact_gain(np.append(core, other)) for other in others]
            others = np.delete(others, int(np.argmax(alone)))
        own = self._exact_gain(np.concatenate([core, others])) - known
        beside = self._exact_gain(np.concatenate([core, others - 0.5 * frequency])) - known
        price = len(others) * np.log(self.total)
        return own + price < STANDS_OUT * (beside + price) + price

    def _nearby(self, frequency: float, count: int) -> tuple[float, float, int]:
        """Return the place and the height of the peak, by golden sections, and the number of waves."""
        k = np.arange(1, count + 1)
        low, high = frequency - 1 / OVERSAMPLING / count, frequency + 1 / OVERSAMPLING / count
        ratio = 0.5 * (np.sqrt(5) - 1)
        places = [high - ratio * (high - low), low + ratio * (high - low)]
        gains = [self._exact_gain(place * k) for place in places]
        for _ in range(REFINING):
            if gains[0] >= gains[1]:
                high, places[1], gains[1] = places[1], places[0], gains[0]
                places[0] = high - ratio * (high - low)
                gains[0] = self._exact_gain(places[0] * k)
            else:
                low, places[0], gains[0] = places[0], places[1], gains[1]
                places[1] = low + ratio * (high - low)
                gains[1] = self._exact_gain(places[1] * k)
        best = int(gains[1] > gains[0])
        return places[best], gains[best], count


def _transforms(turns: np.ndarray, columns: np.ndarray, highest: float) -> np.ndarray:
    """Return sum_n columns[n] exp(-2 pi i f turns[n]) at f = 0, 1, ... up to 2 `highest`, in steps of 1 / OVERSAMPLING.

    Every row is shared by the two cells next to it, and what this does to the transform is undone. Cost N + G log G.
    """
    cells = 1 << int(np.ceil(np.log2(CELLS * highest)))
    place = turns * cells
    cell = np.floor(place).astype(int)
    upper = place - cell
    spread = np.zeros((OVERSAMPLING * cells, columns.shape[1]))
    for number, column in enumerate(columns.T):
        spread[: cells + 2, number] = np.bincount(cell, (1 - upper) * column, cells + 2) + np.bincount(
            cell + 1, upper * column, cells + 2
        )
    count = int(2 * highest * OVERSAMPLING) + 1
    shape = np.sinc(np.arange(count) / (OVERSAMPLING * cells)) ** 2
    return np.fft.rfft(spread, axis=0)[:count] / shape[:, None]


def _explained(sums: np.ndarray, numbers: np.ndarray, count: int, num_trend: int) -> np.ndarray:
    """Return the sum of squares that waves of these frequencies and multiples explain beside the trend, [F, P].

    Products of waves are waves of the sums and differences of their frequencies, so all follows from the transforms.
    """
    window, trend, y = sums[:, 0], sums[:, 1 : 1 + num_trend], sums[:, 1 + num_trend :]
    k = np.arange(1, count + 1)
    own = numbers[:, None] * k
    less, more = numbers[:, None, None] * np.abs(k[:, None] - k), numbers[:, None, None] * (k[:, None] + k)
    cos_less, cos_more = window.real[less], window.real[more]
    sign = np.sign(k[:, None] - k)
    sin_less, sin_more = -window.imag[less] * sign, -window.imag[more]
    # sums over rows of cos cos, cos(k) sin(l), sin sin
    both = 0.5 * (sin_more - sin_less)
    gram = np.block([[0.5 * (cos_less + cos_more), both], [np.swapaxes(both, 1, 2), 0.5 * (cos_less - cos_more)]])
    on_trend = np.concatenate([trend.real[own], -trend.imag[own]], axis=1)  # [F, 2K, trend]
    on_y = np.concatenate([y.real[own], -y.imag[own]], axis=1)
    gram = gram - on_trend @ np.swapaxes(on_trend, 1, 2) + 1e-6 * window.real[0] * np.eye(2 * count)
    return np.sum(on_y * np.linalg.solve(gram, on_y), axis=1)
