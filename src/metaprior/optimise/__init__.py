"""Moved to `metaprior.decisions.optimise`; this path goes with the next release."""

from metaprior.decisions.old_paths import moved
from metaprior.optimise.problems import BRANIN, HARTMANN6, RIPPLES, Objective

__all__ = ["BRANIN", "HARTMANN6", "RIPPLES", "Objective"]

__getattr__ = moved(__name__, "metaprior.decisions.optimise")
