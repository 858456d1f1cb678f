"""Conformal prediction: intervals and sets of classes that contain the target with at least the probability asked for.

The guarantee holds for any estimator, right or wrong, as long as the rows of calibration and prediction are
exchangeable.
"""

from metaprior.conformal.classification import ConformalClassifier
from metaprior.conformal.cross import CrossConformalRegressor
from metaprior.conformal.ranks import TooFewRows
from metaprior.conformal.regression import ConformalRegressor

__all__ = ["ConformalClassifier", "ConformalRegressor", "CrossConformalRegressor", "TooFewRows"]
