"""Kernels over unit latents and over inputs: they express prior knowledge about the function.

`search` finds one for given data; SciPy is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from metaprior.kernels.base import Kernel
from metaprior.kernels.compose import ActiveDims, Custom, Product, Scaled, Sum
from metaprior.kernels.constant import Constant
from metaprior.kernels.hyper import Hyper, hyper
from metaprior.kernels.hyper_kernel import HyperKernel
from metaprior.kernels.lengthscales import PartLengthscale, lengthscales
from metaprior.kernels.linear import Linear
from metaprior.kernels.matern import Matern12, Matern32, Matern52
from metaprior.kernels.periodic import Periodic
from metaprior.kernels.rational_quadratic import RationalQuadratic
from metaprior.kernels.rbf import RBF
from metaprior.kernels.stationary import Stationary

if TYPE_CHECKING:
    from metaprior.kernels.composition import FoundKernel, search

__all__ = [
    "RBF",
    "ActiveDims",
    "Constant",
    "Custom",
    "FoundKernel",
    "Hyper",
    "HyperKernel",
    "Kernel",
    "Linear",
    "Matern12",
    "Matern32",
    "Matern52",
    "PartLengthscale",
    "Periodic",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Stationary",
    "Sum",
    "hyper",
    "lengthscales",
    "named",
    "search",
]

_NAMES = {
    "rbf": RBF,
    "matern12": Matern12,
    "matern32": Matern32,
    "matern52": Matern52,
    "periodic": Periodic,
    "rational_quadratic": RationalQuadratic,
    "linear": Linear,
    "constant": Constant,
}


def named(kernel: object, parameter: str) -> Kernel:
    """Return the kernel itself, or the kernel with this name; raise an error that lists the names otherwise."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel.lower() in _NAMES:
        return _NAMES[kernel.lower()]()
    raise ValueError(
        f"{parameter}: expected a kernel such as metaprior.kernels.RBF() or one of the names {sorted(_NAMES)}; "
        f"got {kernel!r}."
    )


def __getattr__(name: str) -> Any:
    if name in ("FoundKernel", "search"):
        return getattr(importlib.import_module("metaprior.kernels.composition"), name)
    raise AttributeError(f"module 'metaprior.kernels' has no attribute {name!r}; it has {__all__}.")
