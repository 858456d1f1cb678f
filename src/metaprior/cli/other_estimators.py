"""Estimators of other libraries, in the form that `metaprior.compare` takes."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler


def scaled_ridge() -> Pipeline:
    """Return Bayesian ridge regression on standardised columns."""
    return make_pipeline(StandardScaler(), BayesianRidge())


def scaled_logistic() -> Pipeline:
    """Return logistic regression on standardised columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


class NGBoostRegressor(RegressorMixin, BaseEstimator):
    """NGBoost with a Gaussian, whose mean and standard deviation are functions of the input.

    Parameters
    ----------
    verbose : bool, default=False
        Whether to print the loss as it falls.
    random_state : int, default=None
        The seed of its trees.
    """

    def __init__(self, verbose: bool = False, random_state: int | None = None) -> None:
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the trees."""
        from ngboost import NGBRegressor

        self.booster_ = NGBRegressor(verbose=self.verbose, random_state=self.random_state).fit(X, y)
        return self

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the means, and the standard deviations if asked."""
        predicted = self.booster_.pred_dist(X).params
        return (predicted["loc"], predicted["scale"]) if return_std else predicted["loc"]
