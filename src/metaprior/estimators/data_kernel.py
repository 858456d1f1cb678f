"""A kernel on inputs, from the units of the data to standardised ones."""

import numpy as np

from metaprior.estimators.period import starting_periods
from metaprior.kernels import Kernel


def for_standardised(kernel: Kernel, x: np.ndarray, targets: np.ndarray, scale: np.ndarray, peak: int = 0) -> Kernel:
    """Return the kernel for inputs divided by `scale`, one value a column; unknown periods come from the spectrum.

    `peak` 0 takes the highest peak, 1 the next, and so on.
    """
    if kernel.unknown_periods():
        kernel = kernel.with_periods(starting_periods(x, targets, peak))
    return kernel.bound_to(x.shape[1]).standardised(scale)
