"""Estimators that predict what they are told, without a fit: the tests of coverage make thousands of predictions."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class Line(RegressorMixin, BaseEstimator):
    """y = slope x with a standard deviation of 1 + x, right or wrong."""

    def __init__(self, slope=0.0):
        self.slope = slope

    def fit(self, X, y):
        self.n_features_in_ = 1
        return self

    def predict(self, X, return_std=False):
        mean = self.slope * np.asarray(X)[:, 0]
        return (mean, 1 + np.asarray(X)[:, 0]) if return_std else mean


class Slope(RegressorMixin, BaseEstimator):
    """A line through the origin by least squares: a fit of a microsecond that depends on every row."""

    def fit(self, X, y):
        x = np.asarray(X)[:, 0]
        self.slope_ = float(x @ y / (x @ x))
        self.std_ = float(np.sqrt(np.mean((y - self.slope_ * x) ** 2)))
        return self

    def predict(self, X, return_std=False):
        mean = self.slope_ * np.asarray(X)[:, 0]
        return (mean, np.full(len(mean), self.std_)) if return_std else mean


class Softmax(ClassifierMixin, BaseEstimator):
    """Class probabilities that are the softmax of the columns of X times a sharpness, right or wrong."""

    def __init__(self, sharpness=1.0):
        self.sharpness = sharpness

    def fit(self, X, y):
        self.classes_ = np.arange(np.asarray(X).shape[1])
        return self

    def predict_proba(self, X):
        weights = np.exp(self.sharpness * np.asarray(X))
        return weights / weights.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


def noisy_rows(rng, num_rows):
    """x in [0, 2] and y ~ N(x, (0.5 + x)^2): neither the mean nor the spread is that of `Line`."""
    x = rng.uniform(0, 2, num_rows)
    return x[:, None], x + (0.5 + x) * rng.standard_normal(num_rows)


def class_rows(rng, num_rows, num_classes=4):
    """Rows whose class follows the softmax of their columns."""
    X = 1.5 * rng.standard_normal((num_rows, num_classes))
    gumbel = X + rng.gumbel(size=X.shape)
    return X, np.argmax(gumbel, axis=1)
