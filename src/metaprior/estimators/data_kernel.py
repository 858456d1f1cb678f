"""A kernel on inputs, from the units of the data to standardised ones."""

from typing import NamedTuple

import numpy as np

from metaprior.kernels import Kernel
from metaprior.kernels.stationary import Stationary
from metaprior.periods import starting_periods

#: Where the lengthscale of a network's input kernel starts, in standard deviations of the inputs, where every weight is
#: drawn. Weights that change slowly with x leave the fast changes to the network; a start that is too long ends there,
#: with a lower bound and a network that is sure of itself outside the data.
START_LENGTHSCALE = 0.35


class Standardised(NamedTuple):
    """An input kernel that is already one of what the network's input kernel sees, with its start."""

    kernel: Kernel


def input_kernel_for(
    kernel: Kernel,
    x: np.ndarray,
    targets: np.ndarray,
    scale: np.ndarray,
    peak: int = 0,
    start: float = START_LENGTHSCALE,
    weight: np.ndarray | None = None,
) -> Kernel:
    """Return a network's input kernel for inputs divided by `scale`: one that stands alone starts at a given length.

    Parts of a sum or a product do not: a short one would hide a period that it is multiplied with.
    """
    if isinstance(kernel, Stationary):
        kernel = kernel.starting_at(start)
    return for_standardised(kernel, x, targets, scale, peak, weight)


def for_standardised(
    kernel: Kernel,
    x: np.ndarray,
    targets: np.ndarray,
    scale: np.ndarray,
    peak: int = 0,
    weight: np.ndarray | None = None,
) -> Kernel:
    """Return the kernel for inputs divided by `scale`, one value a column; unknown periods come from the spectrum.

    `peak` 0 takes the highest peak, 1 the next, and so on. A row counts `weight` times; None: once.
    """
    if kernel.unknown_periods():
        kernel = kernel.with_periods(starting_periods(x, targets, peak, weight))
    return kernel.bound_to(x.shape[1]).standardised(scale)
