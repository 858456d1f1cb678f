"""The targets of the surrogate: the values of the function, by default on a logarithmic scale, and standardised.

    w = log(1 + (y - best) / s),   s = the lower quartile of y - best.

Far above the best value, only the order of magnitude matters to the search. Near it, small differences matter. As more
values come near the best, s shrinks and the scale becomes finer there.
"""

import numpy as np

from metaprior.estimators.checks import standard_units

#: The quantile of y - best at which the scale turns from linear to logarithmic.
TURN = 0.25


def surrogate_targets(y: np.ndarray, *, warp: bool) -> np.ndarray:
    """Return the values, warped if asked for, with mean 0 and standard deviation 1. Their order is kept."""
    values = _warped(y) if warp else y
    offset, scale = standard_units(values[:, None])
    return (values - offset) / scale


def _warped(y: np.ndarray) -> np.ndarray:
    above = y - np.min(y)
    positive = above[above > 0]
    if not len(positive):
        return above
    # if many values equal the best, the quantile is 0: take the smallest positive difference
    turn = max(float(np.quantile(above, TURN)), float(np.min(positive)))
    return np.log1p(above / turn)
