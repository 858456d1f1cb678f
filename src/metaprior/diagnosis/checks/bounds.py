"""Hyper-parameters at their bounds, and periods that are longer than the data."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.subject import Subject
from metaprior.estimators.lengthscales import num_projections
from metaprior.kernels import Kernel, Periodic
from metaprior.kernels.compose import ActiveDims
from metaprior.kernels.hyper_kernel import HyperKernel

NAME = "bounds"
#: Logarithms of a value and of its bound that are no further apart are equal.
EQUAL = 1e-3


class Placed(NamedTuple):
    """A kernel inside another: itself, the parameter path to it, and the input columns that it sees."""

    kernel: HyperKernel
    path: str
    dims: tuple[int, ...]


def bounds(subject: Subject) -> Finding | LeftOut:
    """Look at every hyper-parameter of the fitted kernels that a user can bound."""
    kernels = _fitted_kernels(subject)
    if not kernels:
        return LeftOut(NAME, "there is no fitted input kernel.")
    dims = tuple(range(int(subject.estimator.n_features_in_)))
    placed = [own for name, kernel in kernels.items() for own in parts_of(kernel, name, dims)]
    at_bounds = [told for own in placed for told in _at_bounds(own, subject)]
    long = [] if _is_projected(subject) else [told for own in placed for told in _long_periods(own, subject)]
    numbers = {"at_bounds": float(len(at_bounds)), "long_periods": float(len(long))}
    if at_bounds:
        advice = f"Widen or remove these bounds of {', '.join(kernels)}, unless you know them to hold."
        return Finding(NAME, "warning", f"At its bound: {'; '.join(at_bounds)}.", advice, numbers)
    if long:
        advice = "Give the period that you expect (period=..., fixed=('period',)), or take an RBF kernel in its place."
        return Finding(NAME, "warning", f"Nothing shows that it repeats: {'; '.join(long)}.", advice, numbers)
    return Finding(NAME, "ok", "No hyper-parameter of the input kernel is at a bound.", "", numbers)


def _fitted_kernels(subject: Subject) -> dict[str, Kernel]:
    """Return the fitted kernels by the parameter that they come from, on numbered columns, in the units of the data."""
    fitted: dict[str, Any] = vars(subject.estimator)
    found = fitted.get("input_kernel_") or fitted.get("kernel_")
    name = "input_kernel" if fitted.get("input_kernel_") is not None else "kernel"
    several = found if isinstance(found, tuple) else (found,)
    named = fitted.get("feature_names_in_")
    columns = None if named is None else [str(name) for name in named]
    return {
        name if len(several) == 1 else f"{name} of target {k}": kernel.with_columns(columns)
        for k, kernel in enumerate(several)
        if isinstance(kernel, Kernel)
    }


def parts_of(kernel: Kernel, path: str, dims: tuple[int, ...]) -> Iterator[Placed]:
    """Yield every kernel with hyper-parameters that a kernel is made of."""
    if isinstance(kernel, HyperKernel):
        yield Placed(kernel, path, dims)
    if isinstance(kernel, ActiveDims):
        dims = tuple(dims[d] for d in kernel.numbers())
    for name, child in kernel.children().items():
        yield from parts_of(child, f"{path}__{name}", dims)


def _is_projected(subject: Subject) -> bool:
    return num_projections(subject.estimator) > 0


def _at_bounds(own: Placed, subject: Subject) -> Iterator[str]:
    for name, *ends in own.kernel.bounds:
        leaf = own.kernel.leaf(name)
        values = np.atleast_1d(np.exp(np.asarray(leaf, np.float64)))
        for which, end in zip(("lower", "upper"), ends, strict=True):
            limits = np.broadcast_to(np.asarray(end, np.float64), values.shape)
            hit = np.flatnonzero(np.abs(np.log(values) - np.log(limits)) < EQUAL)
            for k in hit[:3]:
                where = f" for {_column(own, int(k), subject)}" if len(values) > 1 else ""
                yield f"{own.path}__{name}{where} is at its {which} bound {limits[k]:.4g}"


def _long_periods(own: Placed, subject: Subject) -> Iterator[str]:
    if not isinstance(own.kernel, Periodic) or "period" in own.kernel.fixed:
        return
    periods = np.atleast_1d(np.asarray(own.kernel.period, np.float64))
    spans = np.ptp(subject.seen_x_unit, axis=0) * np.asarray(subject.estimator.x_scale_)
    for period, dim in zip(np.broadcast_to(periods, (len(own.dims),)), own.dims, strict=True):
        if period > spans[dim] > 0:
            name = subject.column_names[dim]
            yield f"the period {period:.4g} of {own.path} is longer than the data ({spans[dim]:.4g} in {name})"


def _column(own: Placed, k: int, subject: Subject) -> str:
    names = subject.column_names
    return names[own.dims[k]] if len(own.dims) > k and not _is_projected(subject) else f"dimension {k}"
