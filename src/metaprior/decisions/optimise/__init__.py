"""Bayesian optimisation: find the minimum of an expensive function on a box with few evaluations."""

from metaprior.decisions.optimise.acquisition import ACQUISITIONS
from metaprior.decisions.optimise.box import Box
from metaprior.decisions.optimise.loop import Optimiser, default_surrogate, minimise

__all__ = [
    "ACQUISITIONS",
    "Box",
    "Optimiser",
    "default_surrogate",
    "minimise",
]
