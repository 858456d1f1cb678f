"""A model of rewards that says how it was fitted."""

from sklearn.base import BaseEstimator, RegressorMixin

from metaprior.estimators.base import Estimator


class Spy(RegressorMixin, BaseEstimator):
    """Counts its fits; knows that arm 1 gives 1 and arm 0 nothing."""

    def __init__(self, warm_start=False, max_iter=100, random_state=None):
        self.warm_start, self.max_iter, self.random_state = warm_start, max_iter, random_state

    def fit(self, X, y):
        self.fits_ = [*getattr(self, "fits_", []), (len(X), self.max_iter, self.random_state)]
        return self

    def predict(self, X):
        return X[:, -1]


Estimator.register(Spy)  # goes on from its last fit, as the library's own do
