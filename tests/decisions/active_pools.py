"""A small pool with its answers, and estimators from elsewhere: what the tests of several loops need."""

from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (40, 1))
Y = np.sin(3 * X[:, 0]) + 0.05 * RNG.standard_normal(40)
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 1.0])]
TEST = (np.linspace(-2, 2, 30)[:, None], np.sin(3 * np.linspace(-2, 2, 30)))
SMALL = {"hidden_layer_sizes": (4,), "n_inducing": 4, "n_predict_draws": 8, "max_iter": 20}


def rng(seed=0):
    return np.random.default_rng(seed)


class Distance(RegressorMixin, BaseEstimator):
    """A regressor from elsewhere: the nearest target, as unsure as the nearest row is far."""

    fits = 0

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        Distance.fits += 1
        self.data_ = X, y
        return self

    def predict(self, X, return_std=False):
        gap = np.abs(X[:, None] - self.data_[0]).sum(axis=2)
        mean = self.data_[1][np.argmin(gap, axis=1)]
        return (mean, np.min(gap, axis=1) + 0.1) if return_std else mean


class Frequencies(ClassifierMixin, BaseEstimator):
    """A classifier from elsewhere: the shares of the classes, the same for all rows."""

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / len(y)
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))
