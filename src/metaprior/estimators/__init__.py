"""scikit-learn estimators; NumPy at the border."""

from metaprior.estimators.classifier import MetaGPClassifier
from metaprior.estimators.regressor import MetaGPRegressor

__all__ = ["MetaGPClassifier", "MetaGPRegressor"]
