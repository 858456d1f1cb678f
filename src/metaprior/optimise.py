"""Moved to `metaprior.decisions.optimise`; this path goes with the next release."""

from metaprior.decisions.old_paths import moved

__getattr__ = moved(__name__, "metaprior.decisions.optimise")
