"""How long a fit takes until its bound is as good as at its end."""

import time

import numpy as np
from sklearn.base import clone

from metaprior import MetaGPRegressor

#: Steps that the bound is averaged over; it is noisy where it depends on draws.
WINDOW = 20


def seconds_to_bound(model: MetaGPRegressor, x: np.ndarray, y: np.ndarray) -> float:
    """Return the seconds of a compiled fit until its bound is within 1 nat, or 0.1 %, of that at its end.

    The steps of a fit are taken to last as long as each other.
    """
    clone(model).fit(x, y)
    begun = time.perf_counter()
    fitted = clone(model).fit(x, y)
    whole = time.perf_counter() - begun
    bound = np.convolve(fitted.elbo_history_, np.ones(WINDOW) / WINDOW, "valid")
    near = bound >= bound[-1] - max(1.0, 1e-3 * abs(bound[-1]))
    step = int(np.argmax(near)) + WINDOW
    return whole * step / len(fitted.elbo_history_)
