"""scikit-learn estimators; NumPy at the border."""

from metaprior.estimators.metagp import MetaGPClassifier, MetaGPRegressor

__all__ = ["MetaGPClassifier", "MetaGPRegressor"]
