"""Bayesian optimisation: find the lowest point of an expensive function on a box, a question at a time."""

from metaprior.optimise.acquisition import ACQUISITIONS
from metaprior.optimise.box import Box
from metaprior.optimise.optimiser import Optimiser, default_surrogate, minimise
from metaprior.optimise.problems import BRANIN, HARTMANN6, RIPPLES, Objective

__all__ = [
    "ACQUISITIONS",
    "BRANIN",
    "HARTMANN6",
    "RIPPLES",
    "Box",
    "Objective",
    "Optimiser",
    "default_surrogate",
    "minimise",
]
