"""Multi-task learning: related functions share a network below its output layer; a new one is a linear solve away."""

from metaprior.multitask.estimators import MultiTaskClassifier, MultiTaskRegressor

__all__ = ["MultiTaskClassifier", "MultiTaskRegressor"]
