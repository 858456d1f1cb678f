"""The GP over weight codes: inducing codes with q(u), and one conditional per file."""

from metaprior.weight_gp.anchored import Anchored, Placed, Posterior
from metaprior.weight_gp.base import Conditional, ConditionalDraw, GPContext, LayerLatents
from metaprior.weight_gp.diag import Diag
from metaprior.weight_gp.fitc import FITC
from metaprior.weight_gp.full import Full
from metaprior.weight_gp.output import KnownValues, OutputPrior, OutputRows, PriorFunction
from metaprior.weight_gp.pathwise import Pathwise
from metaprior.weight_gp.sparse_gp import SparseGP
from metaprior.weight_gp.weight_noise import WeightNoise
from metaprior.weight_gp.whitened import Whitened

__all__ = [
    "FITC",
    "Anchored",
    "Conditional",
    "ConditionalDraw",
    "Diag",
    "LayerLatents",
    "Full",
    "KnownValues",
    "SparseGP",
    "OutputPrior",
    "OutputRows",
    "PriorFunction",
    "Pathwise",
    "Placed",
    "Posterior",
    "GPContext",
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
        f"conditional: expected one of {sorted(_CONDITIONALS)} or a metaprior.weight_gp.Conditional; "
        f"got {conditional!r}."
    )
