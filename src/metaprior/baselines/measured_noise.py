"""Where the noise of mean-field networks starts: at a part of what rows that are near each other differ by.

Their bounds take signal for noise where the noise may rise early, so it is held for most of training. Held at a small
value on noisy data, a network learns the noise by heart; held at a measured one, it does neither.
"""

import numpy as np

from metaprior.estimators.checks import standard_units
from metaprior.estimators.method import START_NOISE

#: The part of the measured noise that is held: what neighbours differ by has signal in it.
PART = 0.5
#: Rows whose neighbours are looked for, at most: a spread is known well enough from them.
MOST_ROWS = 1000


def held_noise(x: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the noise that is held: a part of the measured one, and not below the usual start."""
    least = np.full(targets.shape[1], START_NOISE)
    return least if len(x) == 1 else np.maximum(least, PART * measured_noise(x, targets))


def measured_noise(x: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the root of half the mean squared difference of every target between a row and the row nearest to it.

    Where the function hardly changes between neighbours this is the spread of the noise; where they are far apart, of
    all that the targets do. It costs `MOST_ROWS` * rows * features.
    """
    from sklearn.neighbors import NearestNeighbors

    offset, scale = standard_units(x)
    unit = (x - offset) / scale
    asked = np.linspace(0, len(x) - 1, min(len(x), MOST_ROWS)).astype(int)
    near = NearestNeighbors(n_neighbors=2).fit(unit).kneighbors(unit[asked], return_distance=False)
    other = np.where(near[:, 0] == asked, near[:, 1], near[:, 0])  # of rows that are equal any may come first
    return np.asarray(np.sqrt(np.mean((targets[asked] - targets[other]) ** 2, axis=0) / 2))
