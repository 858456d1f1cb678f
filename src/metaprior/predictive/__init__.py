"""Predictive distributions: what a fitted model says about new inputs."""

from metaprior.predictive.base import Predictive
from metaprior.predictive.protocol import PredictiveDistribution

__all__ = ["Predictive", "PredictiveDistribution"]
