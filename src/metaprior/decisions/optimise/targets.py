"""What the surrogate sees of the answers: standardised, and by default on a logarithmic scale above the best.

    w = log(1 + (y - best) / s),   s = the lower quartile of y - best.

Far above the best, only the order of magnitude of an answer matters to the search; near it, small differences do. As
answers gather near the best, s shrinks and the scale grows finer there.
"""

import numpy as np

from metaprior.estimators.checks import standard_units

#: The quantile of the answers at which the scale turns from linear to logarithmic.
TURN = 0.25


def surrogate_targets(y: np.ndarray, *, warp: bool) -> np.ndarray:
    """Return the answers, warped if wished, with mean 0 and standard deviation 1; their order stays."""
    values = _warped(y) if warp else y
    offset, scale = standard_units(values[:, None])
    return (values - offset) / scale


def _warped(y: np.ndarray) -> np.ndarray:
    above = y - np.min(y)
    positive = above[above > 0]
    if not len(positive):
        return above
    # many equal answers: the smallest step there is
    turn = max(float(np.quantile(above, TURN)), float(np.min(positive)))
    return np.log1p(above / turn)
