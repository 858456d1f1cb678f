"""A fitted kernel in words, such as "a wave in 'day' that repeats every 7 days, plus a straight line in 'day'"."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metaprior import kernels
from metaprior.kernels.compose import ActiveDims, Product, Scaled, Sum
from metaprior.kernels.stationary import Stationary

#: How smooth the functions of a kernel are, for those that are less than smooth.
ROUGH = {kernels.Matern12: "rough", kernels.Matern32: "fairly smooth"}
#: The most columns that a phrase names.
MOST_NAMED = 4


def kernel_phrase(kernel: kernels.Kernel, features: Sequence[str], units: Mapping[str, str]) -> str:
    """Return a kernel in words.

    Parameters
    ----------
    kernel : Kernel
        In the units of the data.
    features : sequence of str
        The names of the columns that it sees.
    units : mapping from str to str
        The units of those columns that have one, such as "days".
    """
    if isinstance(kernel, Sum):
        return ", plus ".join(kernel_phrase(part, features, units) for part in (kernel.left, kernel.right))
    if isinstance(kernel, Product):
        parts = [kernel_phrase(part, features, units) for part in (kernel.left, kernel.right)]
        return " times ".join(f"({part})" if ", plus " in part else part for part in parts)
    if isinstance(kernel, Scaled):
        return kernel_phrase(kernel.inner, features, units)
    if isinstance(kernel, ActiveDims):
        dims: Sequence[Any] = kernel.dims
        seen = [dim if isinstance(dim, str) else features[dim] for dim in dims]
        return kernel_phrase(kernel.inner, seen, units)
    return _base(kernel, features, units)


def _base(kernel: Any, features: Sequence[str], units: Mapping[str, str]) -> str:
    if isinstance(kernel, kernels.Periodic):
        return f"a wave in {_each(features, kernel.period, units, 'that repeats every')}"
    if isinstance(kernel, Stationary):
        kind = next((word for cls, word in ROUGH.items() if isinstance(kernel, cls)), "smooth")
        return f"a {kind} function of {_each(features, kernel.lengthscale, units, 'over')}"
    if isinstance(kernel, kernels.Linear):
        return f"a straight line in {_listed([repr(name) for name in features])}"
    if isinstance(kernel, kernels.Constant):
        return "a constant"
    return " ".join(repr(kernel).split())


def _each(features: Sequence[str], values: Any, units: Mapping[str, str], verb: str) -> str:
    """Return the columns with a value of each; that of a single one stands after it, and those of more in brackets."""
    spread = np.broadcast_to(np.asarray(values, np.float64), len(features))
    said = [
        f"{verb} {float(f'{value:.3g}'):,g} {units.get(name, '')}".strip()
        for name, value in zip(features, spread, strict=True)
    ]
    if len(features) == 1 and verb != "over":
        return f"{features[0]!r} {said[0]}"
    return _listed([f"{name!r} ({own})" for name, own in zip(features, said, strict=True)])


def _listed(items: Sequence[str]) -> str:
    shown = ", ".join(items[:MOST_NAMED])
    return shown if len(items) <= MOST_NAMED else f"{shown} and {len(items) - MOST_NAMED} more columns"
