"""The periods of the data: the peaks of their spectrum, and the evidence of a Gaussian process with each period.

The likelihood of a period is multi-modal, and gradient descent from a wrong start stays there. So it is looked for

1. on a fine grid of frequencies, by least squares of a trend and of waves of the frequency and its multiples. With the
   best number of waves K, a frequency gains N / 2 log(RSS of the trend / RSS with K waves) - K log N. All sums over
   rows come from fast Fourier transforms. Cost N log N per column;
2. among the highest peaks, their parts and their multiples, by the evidence of a Gaussian process with a periodic
   kernel, from all rows: pulses have peaks at all multiples of their frequency, of which the first may be the lowest.

The trend is every function that turns less than three times over the data, so a curved trend is no period. A wave with
fewer turns counts only where no other stands out, or where it says more, beside a line, than the trend and the other.
"""

from typing import NamedTuple

import numpy as np

from metaprior.periods.transforms import OVERSAMPLING
from metaprior.periods.waves import FEWEST_TURNS, WAVES, Waves, line, slow_trend

#: Rows that are looked at, chosen at random beyond that: a regular choice would alias short periods.
MAX_ROWS = 6_000
#: Turns over the data from which on a wave is looked for at all.
LEAST_TURNS = 1.0
#: Peaks of the grid that are refined, and periods that are returned.
MOST_PEAKS, MOST_PERIODS = 6, 6
#: What a peak may be a multiple or a part of: frequencies that are tried beside that of a peak.
FAMILY = (1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 2, 3, 4, 5)
#: The most waves of a period.
MOST_WAVES = 24
#: What the further waves of a long period must say: twice as much as waves beside them, shifted by parts of its
#: frequency, or as much as the shorter period; and a tenth of what that says, and three nats. What is spread over many
#: frequencies is no period.
STANDS_OUT, SHIFTS, LEAST_SHARE, LEAST_GAIN = 2.0, (-0.5, 0.25, 0.5), 0.1, 3.0


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
    x, y, root = x[keep], y[keep], np.ones(len(keep)) if weight is None else np.sqrt(weight[keep])
    spread, distinct = np.ptp(x), np.unique(x)
    if spread == 0 or len(distinct) < 4 or not np.any(np.ptp(y, axis=0) > 0):
        return Periods(np.array([float(spread) or 1.0]), np.zeros(1))
    turns = (x - x.min()) / spread  # from 0 to 1: a frequency is a number of turns over the data
    fastest = max(0.5 / np.quantile(np.diff(distinct) / spread, 0.25), 2 * LEAST_TURNS)
    fastest = min(fastest, 0.5 * MAX_ROWS)
    y = (y - y.mean(axis=0)) / np.maximum(y.std(axis=0), 1e-300)
    beside_trend, beside_line = (Waves(turns, y, basis(turns, root), root) for basis in (slow_trend, line))
    frequency, gain = _best(beside_trend, FEWEST_TURNS, fastest)
    few, few_gain = _best(beside_line, LEAST_TURNS, min(FEWEST_TURNS, fastest))
    stands_out = gain > np.log(OVERSAMPLING * fastest)  # as many frequencies were tried
    if len(few) and few_gain[0] > np.max(gain, initial=0.0) + _gain_of_trend(beside_trend, beside_line):
        stands_out[:] = False
    order = np.concatenate([frequency[stands_out], few, frequency[~stands_out]])
    gains = np.concatenate([gain[stands_out], few_gain, gain[~stands_out]])
    kept = _different(order)[:MOST_PERIODS]
    if not len(kept):
        return Periods(np.array([float(spread)]), np.zeros(1))
    return Periods(spread / order[kept], gains[kept])


def _gain_of_trend(trend: Waves, straight: Waves) -> float:
    """Return by how many nats a trend beats a line, with a price for every function that it has more (BIC)."""
    num_rows, num_targets = trend.num_rows, trend.y.shape[1]
    price = 0.5 * (trend.trend.shape[1] - straight.trend.shape[1]) * num_targets * np.log(num_rows)
    return float(0.5 * num_rows * np.sum(np.log((straight.totals + 1e-300) / (trend.totals + 1e-300))) - price)


def _different(frequency: np.ndarray) -> np.ndarray:
    """Return the places of frequencies that no earlier one is equal to, within a quarter of a turn over the data."""
    gaps = np.abs(frequency[:, None] - frequency)
    return np.flatnonzero([not np.any(gaps[place, :place] < 0.25) for place in range(len(frequency))])


def _best(waves: Waves, lowest: float, highest: float) -> tuple[np.ndarray, np.ndarray]:
    """Return frequencies between two with their evidence, the best first: peaks, or what peaks are multiples of."""
    peaks = _peaks(waves, lowest, highest)
    related = np.outer(peaks, FAMILY).ravel()
    frequencies = np.concatenate([peaks, related[(related >= lowest) & (related <= highest)]])
    kept = _different(frequencies)
    members = _ranked(waves, frequencies[kept], kept < len(peaks), highest)[: 2 * MOST_PERIODS]
    refined = [waves.refined(each.frequency, min(3, len(_multiples(each.frequency, highest)))) for each in members]
    members = _ranked(waves, np.array(refined), np.array([each.is_peak for each in members]), highest)
    frequencies = np.array([each.frequency for each in members])
    lone = [_without_spread(waves, each, frequencies, highest) for each in frequencies]
    found = np.array([_freed(waves, each, peaks, highest) for each in lone])
    kept = np.flatnonzero([not _is_related(found[place], found[:place]) for place in range(len(found))])
    return found[kept], np.array([waves.evidence(each, _multiples(each, highest)) for each in found[kept]])


class _Member(NamedTuple):
    """A frequency, its evidence, and whether it is a peak of the grid, not only a part or a multiple of one."""

    frequency: float
    evidence: float
    is_peak: bool

    @property
    def rank(self) -> float:
        """The evidence, less what a frequency without a peak of its own must say more than one with a peak."""
        return self.evidence if self.is_peak else (self.evidence - LEAST_GAIN) / (1 + LEAST_SHARE)


def _ranked(waves: Waves, frequencies: np.ndarray, is_peak: np.ndarray, highest: float) -> list[_Member]:
    """Return the frequencies with their evidence, the best first."""
    evidence = [waves.evidence(each, _multiples(each, highest)) for each in frequencies]
    members = [_Member(*each) for each in zip(frequencies, evidence, is_peak, strict=True)]
    return sorted(members, key=lambda each: -each.rank)


def _is_related(frequency: float, others: np.ndarray) -> bool:
    """Return whether a frequency is within a turn of another, or a small multiple or a part of it."""
    times = np.array(FAMILY)
    width = np.select([times == 1, times < 1], [1.0, 0.25], 0.1 * times)
    near = np.abs(np.multiply.outer(others, times) - frequency) < width
    return bool(np.any(near))


def _multiples(frequency: float, highest: float) -> np.ndarray:
    """Return the numbers of the waves of a period up to the highest frequency."""
    return np.arange(1, int(np.clip(highest / frequency, 1, MOST_WAVES)) + 1)


def _peaks(waves: Waves, lowest: float, highest: float) -> np.ndarray:
    """Return the frequencies of the highest peaks of the grid, refined, the highest first.

    The lowest frequency is no peak: what a slower wave leaves beside the trend rises towards it.
    """
    numbers = np.arange(int(np.ceil((lowest - 0.25) * OVERSAMPLING)), int(highest * OVERSAMPLING) + 1)
    if not len(numbers):
        return np.zeros(0)
    gains, counts = waves.gains(numbers, highest)
    walled = np.concatenate([[np.inf], gains, [-np.inf]])
    places = np.flatnonzero((gains >= walled[:-2]) & (gains > walled[2:]))
    places = places[np.argsort(-gains[places], kind="stable")[:MOST_PEAKS]]
    return np.array([waves.refined(numbers[place] / OVERSAMPLING, counts[place]) for place in places])


def _freed(waves: Waves, frequency: float, peaks: np.ndarray, highest: float) -> float:
    """Return the frequency of the first wave alone where it and another peak say more than waves that are multiples.

    Near a multiple there may be the wave of another period, which pulls the frequency away.
    """
    alone = waves.refined(frequency, 1)
    k = _multiples(frequency, highest)
    multiples = max(waves.gain(frequency * k[:count]) for count in WAVES if count <= len(k))
    pairs = [waves.gain(np.array([alone, peak])) for peak in peaks if abs(peak - alone) > 0.5]
    return alone if max(pairs, default=-np.inf) > multiples + np.log(waves.num_rows) else frequency


def _without_spread(waves: Waves, frequency: float, members: np.ndarray, highest: float) -> float:
    """Return the frequency, or the member that is a multiple of it and says all of it."""
    for times in (5, 4, 3, 2):
        near = members[np.abs(members - times * frequency) < 0.25 * times]
        if len(near) and _is_spread(waves, frequency, _multiples(frequency, highest), times):
            return float(near[0])
    return frequency


def _is_spread(waves: Waves, frequency: float, k: np.ndarray, times: int) -> bool:
    """Return whether the waves that are no multiples of `times` say little more than waves beside them would.

    A slow wander has power at all frequencies, and most at the low ones: a long period would explain some of it.
    """
    is_core = k % times == 0
    core = waves.evidence(frequency, k[is_core])
    own = waves.evidence(frequency, k) - core
    beside = max(waves.evidence(frequency, k, np.where(is_core, 0.0, shift)) for shift in SHIFTS) - core
    return own < max(min(STANDS_OUT * beside, core), LEAST_SHARE * core, LEAST_GAIN)
