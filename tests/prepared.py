"""Fits before they begin: what an estimator would train on."""

import numpy as np

from metaprior.estimators.fit import prepare_fit


def problem_of(estimator, X, y):
    return prepare_fit(estimator, X, y).problem


def method_for(estimator, num_rows):
    """The method of an estimator, and a problem of so many rows of nothing in particular."""
    rng = np.random.default_rng(0)
    prepared = prepare_fit(estimator, rng.standard_normal((num_rows, 1)), rng.standard_normal(num_rows))
    return prepared.method, prepared.problem
