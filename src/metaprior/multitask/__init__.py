"""Multi-task learning: related functions share a network's unit latents, and a new one is learned in few steps."""

from metaprior.multitask.estimators import MultiTaskClassifier, MultiTaskRegressor

__all__ = ["MultiTaskClassifier", "MultiTaskRegressor"]
