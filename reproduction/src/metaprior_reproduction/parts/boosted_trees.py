"""Boosted trees of scikit-learn with the one spread that they can be given: that of their cross-validated residuals."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict

from metaprior.predictive.from_sklearn import GaussianMarginals


class BoostedTrees(RegressorMixin, BaseEstimator):
    """`HistGradientBoostingRegressor`, predicting Gaussians of one standard deviation.

    The trees predict a number alone. The standard deviation is the root mean square of the residuals of a
    cross-validation over the training rows, so it is that of rows that were not learned from.

    Parameters
    ----------
    max_iter : int, default=100
        The number of trees, as scikit-learn's default.
    n_folds : int, default=5
        The number of folds of the cross-validation.
    random_state : int, default=None
        The seed of the folds and of the trees.

    Attributes
    ----------
    trees_ : HistGradientBoostingRegressor
        The trees of all rows.
    residual_spread_ : float
        The standard deviation of every prediction.
    """

    def __init__(self, max_iter: int = 100, n_folds: int = 5, random_state: int | None = None) -> None:
        self.max_iter = max_iter
        self.n_folds = n_folds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Measure the spread, then learn from all rows."""
        trees = HistGradientBoostingRegressor(max_iter=self.max_iter, random_state=self.random_state)
        folds = KFold(self.n_folds, shuffle=True, random_state=self.random_state)
        residuals = y - cross_val_predict(trees, X, y, cv=folds)
        self.residual_spread_ = float(np.sqrt(np.mean(residuals**2)))
        self.trees_ = trees.fit(X, y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions of the trees."""
        predicted: np.ndarray = self.trees_.predict(X)
        return predicted

    def predict_distribution(self, X: Any) -> GaussianMarginals:
        """Return a Gaussian around every prediction."""
        mean = self.predict(X)
        return GaussianMarginals(mean, np.full(mean.shape, self.residual_spread_))
