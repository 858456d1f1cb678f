"""The starting noise of mean-field networks and MetaNN: a fraction of what neighbouring rows differ by.

If the noise can rise early, the ELBO of these networks takes signal for noise. So the noise is held for most of
training. If it is held at too small a value, the network fits the noise of the data. A measured value avoids both.
"""

import numpy as np

from metaprior.estimators.checks import standard_units
from metaprior.estimators.method import START_NOISE

#: The fraction of the measured noise that is used, because neighbours also differ by signal.
PART = 0.5
#: The most rows whose neighbours are searched for. They are enough to estimate a standard deviation.
MOST_ROWS = 1000


def held_noise(x: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the noise to hold: a fraction of the measured one, but at least the usual start."""
    least = np.full(targets.shape[1], START_NOISE)
    return least if len(x) == 1 else np.maximum(least, PART * measured_noise(x, targets))


def measured_noise(x: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return, for every target, the root of half the mean squared difference between a row and its nearest neighbour.

    If the function hardly changes between neighbours, this is the standard deviation of the noise. If they are far
    apart, it is that of the targets. The cost is `MOST_ROWS` * rows * features.
    """
    from sklearn.neighbors import NearestNeighbors

    offset, scale = standard_units(x)
    unit = (x - offset) / scale
    asked = np.linspace(0, len(x) - 1, min(len(x), MOST_ROWS)).astype(int)
    near = NearestNeighbors(n_neighbors=2).fit(unit).kneighbors(unit[asked], return_distance=False)
    other = np.where(near[:, 0] == asked, near[:, 1], near[:, 0])  # among equal rows, any may come first
    return np.asarray(np.sqrt(np.mean((targets[asked] - targets[other]) ** 2, axis=0) / 2))
