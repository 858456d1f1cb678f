"""The evidence of a period: of a Gaussian process with a periodic kernel, a slow trend and white noise.

The periodic kernel exp(-2 sin^2(pi d / p) / l^2) is a sum of waves with independent normal coefficients: those of the
k-th multiple of the frequency have the variance 2 I_k(1 / l^2) exp(-1 / l^2), I the modified Bessel function. So the
evidence needs only the waves' products with each other and with the targets, for any number of rows, and

    log p(y | period) - log p(y | none) = -log |I + r A| / 2 - n / 2 log(1 - r c' (I + r A)^-1 c / y'y)

for A the waves' products times the roots of these variances, c their products with y, r the signal to noise, and the
noise at its best. It prefers a period neither to a half of it, which misses the odd waves, nor to its double, whose odd
waves are empty and cost evidence: something that sums of squares decide only with a price for every number of waves.
"""

import numpy as np
from scipy.special import ive

#: Lengthscales on the circle and signal-to-noise ratios (for N rows, times N) over which the best is taken.
LENGTHSCALES = np.array([0.15, 0.3, 0.6, 1.2, 2.4])
RATIOS = np.logspace(0, 8, 17)


def evidence_of_waves(
    k: np.ndarray, gram: np.ndarray, projected: np.ndarray, totals: np.ndarray, num_rows: float
) -> float:
    """Return by how many nats a period beats none, at the best lengthscale and signal-to-noise ratio.

    `k` [K] are the waves' numbers, 1 for the period's own frequency. `gram` [2 K, 2 K] are the products of all cosines
    and then all sines with each other, `projected` [2 K, P] those with the targets, `totals` [P] the targets' sums of
    squares; `num_rows` is what is left of the rows after the trend.
    """
    roots = np.sqrt(np.tile(2 * ive(k, LENGTHSCALES[:, None] ** -2), 2))  # [L, 2 K]
    sizes, directions = np.linalg.eigh(roots[:, :, None] * gram * roots[:, None, :])
    sizes = np.maximum(sizes, 0)
    along = np.swapaxes(directions, 1, 2) @ (roots[:, :, None] * projected)  # [L, 2 K, P]
    ratio = RATIOS[:, None, None] / num_rows  # [R, 1, 1]
    shrunk = ratio / (1 + ratio * sizes)  # [R, L, 2 K]
    explained = np.einsum("rlk,lkp->rlp", shrunk, along**2)
    left = np.maximum(1 - explained / np.maximum(totals, 1e-300), 1e-9)
    volume = np.sum(np.log1p(ratio * sizes), axis=2)
    return float(np.max(-0.5 * len(totals) * volume - 0.5 * num_rows * np.sum(np.log(left), axis=2)))
