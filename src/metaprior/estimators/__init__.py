"""scikit-learn estimators; NumPy at the border."""

from metaprior.estimators.components import kernel_components
from metaprior.estimators.lengthscales import Relevance, relevance
from metaprior.estimators.metagp import MetaGPClassifier, MetaGPRegressor
from metaprior.estimators.together import fit_together

__all__ = ["MetaGPClassifier", "MetaGPRegressor", "Relevance", "fit_together", "kernel_components", "relevance"]
