"""Bayesian optimisation: find the lowest point of an expensive function on a box, a question at a time."""

from metaprior.optimise.acquisition import ACQUISITIONS
from metaprior.optimise.box import Box
from metaprior.optimise.optimiser import Optimiser, default_surrogate, minimise

__all__ = [
    "ACQUISITIONS",
    "Box",
    "Optimiser",
    "default_surrogate",
    "minimise",
]
