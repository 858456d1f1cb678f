"""Sums over rows at many frequencies at once, by fast Fourier transforms of the rows spread over a fine grid."""

import numpy as np

#: Frequencies for each turn over the data, and cells of the grid for the shortest period.
OVERSAMPLING, CELLS = 8, 16


def transforms(turns: np.ndarray, columns: np.ndarray, highest: float) -> np.ndarray:
    """Return sum_n columns[n] exp(-2 pi i f turns[n]) at f = 0, 1 / OVERSAMPLING, ... up to 2 `highest`, [F, C].

    `turns` are between 0 and 1. Every row is shared by the two cells next to it, and what this does to the transform
    is undone. Cost N + G log G.
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


def explained_by_waves(sums: np.ndarray, numbers: np.ndarray, count: int, num_trend: int) -> np.ndarray:
    """Return the sum of squares that `count` waves explain beside the trend, at frequencies of the grid, [F, P].

    `sums` are the transforms of ones, of the trend's columns and of the targets. A frequency is given by its number on
    the grid; the waves are those of the frequency and of its multiples. Products of waves are waves of the sums and
    differences of their frequencies, so all follows from the transforms.
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
