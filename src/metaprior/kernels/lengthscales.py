"""The lengthscales of a kernel, column by column: over which distance the function changes along each of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from metaprior.kernels.base import Kernel
from metaprior.kernels.compose import ActiveDims
from metaprior.kernels.hyper_kernel import HyperKernel


class PartLengthscale(NamedTuple):
    """The lengthscale of a part of a kernel along a column."""

    part: str
    column: int
    lengthscale: float


def lengthscales(kernel: Kernel, num_columns: int) -> list[PartLengthscale]:
    """Return the lengthscales of all parts of a kernel that have one along a column, in the units of the column.

    Parts are called by their class; of several with one class, the second is "RBF 2". Kernels without a length, such as
    `Linear` and `Constant`, have no entry, and neither has `Periodic`, whose lengthscale is on the circle.
    """
    found, counts = list[PartLengthscale](), dict[str, int]()
    for part, columns in _parts(kernel, range(num_columns)):
        name = type(part).__name__
        counts[name] = number = counts.get(name, 0) + 1
        values = np.broadcast_to(np.exp(np.asarray(part.leaf("lengthscale"), np.float64)), (len(columns),))
        label = name if number == 1 else f"{name} {number}"
        found += [PartLengthscale(label, column, float(v)) for column, v in zip(columns, values, strict=True)]
    return found


def _parts(kernel: Kernel, columns: Sequence[int]) -> Iterator[tuple[HyperKernel, Sequence[int]]]:
    """Yield the parts that have a lengthscale in the units of the inputs, and the columns that each acts on."""
    if isinstance(kernel, ActiveDims):
        columns = [columns[place] for place in kernel.numbers()]
    declared = kernel.declared.get("lengthscale") if isinstance(kernel, HyperKernel) else None
    if isinstance(kernel, HyperKernel) and declared is not None and declared.unit == 1:
        yield kernel, columns
    for child in kernel.children().values():
        yield from _parts(child, columns)
