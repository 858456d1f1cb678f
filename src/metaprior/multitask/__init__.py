"""Multi-task learning: related tasks share a network below its output layer, and a new task needs a linear solve."""

from metaprior.multitask.estimators import MultiTaskClassifier, MultiTaskRegressor

__all__ = ["MultiTaskClassifier", "MultiTaskRegressor"]
