"""The checks, in the order of a report. Each is one file with a function from a `Subject` to a `Finding` or `LeftOut`.

A new check is one new file, and its function in `CHECKS`.
"""

from collections.abc import Callable

from metaprior.diagnosis.checks.bounds import bounds
from metaprior.diagnosis.checks.calibration import calibration
from metaprior.diagnosis.checks.convergence import convergence
from metaprior.diagnosis.checks.coverage import coverage
from metaprior.diagnosis.checks.hidden_units import hidden_units
from metaprior.diagnosis.checks.input_kernel import input_kernel
from metaprior.diagnosis.checks.numerics import numerics
from metaprior.diagnosis.checks.nuts import compared_with_nuts, refuse_large
from metaprior.diagnosis.checks.pareto_k import pareto_k
from metaprior.diagnosis.checks.residuals import residuals
from metaprior.diagnosis.checks.signal import signal
from metaprior.diagnosis.checks.skill import skill
from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.subject import Subject

__all__ = ["CHECKS", "compared_with_nuts", "refuse_large"]

CHECKS: tuple[Callable[[Subject], Finding | LeftOut], ...] = (
    convergence,
    numerics,
    signal,
    input_kernel,
    bounds,
    hidden_units,
    skill,
    calibration,
    coverage,
    residuals,
    pareto_k,
)
