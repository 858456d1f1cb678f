"""Predictive distributions: what a fitted model says of new inputs, and how it is asked."""

from metaprior.predictive.draws import Predictive

__all__ = ["Predictive"]
