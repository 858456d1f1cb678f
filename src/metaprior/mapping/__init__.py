"""The GP over weight codes: inducing codes with q(u), and one conditional a file."""

from metaprior.mapping.anchored import Anchored, Placed, Posterior
from metaprior.mapping.base import Conditional, ConditionalDraw, Ends, Prior
from metaprior.mapping.diag import Diag
from metaprior.mapping.fitc import FITC
from metaprior.mapping.full import Full
from metaprior.mapping.inducing import Mapping
from metaprior.mapping.output import KnownValues, OutputPrior, OutputRows, PriorFunction
from metaprior.mapping.pathwise import Pathwise
from metaprior.mapping.weight_noise import WeightNoise
from metaprior.mapping.whitened import Whitened

__all__ = [
    "FITC",
    "Anchored",
    "Conditional",
    "ConditionalDraw",
    "Diag",
    "Ends",
    "Full",
    "KnownValues",
    "Mapping",
    "OutputPrior",
    "OutputRows",
    "PriorFunction",
    "Pathwise",
    "Placed",
    "Posterior",
    "Prior",
    "WeightNoise",
    "Whitened",
    "conditional_named",
]

_CONDITIONALS = {"diag": Diag, "fitc": FITC, "full": Full, "pathwise": Pathwise}


def conditional_named(conditional: object) -> Conditional:
    """Return a conditional from its name, or the conditional itself."""
    if isinstance(conditional, Conditional):
        return conditional
    if isinstance(conditional, str) and conditional in _CONDITIONALS:
        return _CONDITIONALS[conditional]()
    raise ValueError(
        f"conditional: expected one of {sorted(_CONDITIONALS)} or a metaprior.mapping.Conditional; got {conditional!r}."
    )
