"""Small fitted models that several bridges cross with."""

import functools

import numpy as np

from metaprior import MetaGPClassifier, MetaGPRegressor
from metaprior.baselines import HMCRegressor, MFVIRegressor

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (24, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.standard_normal(24)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, [0.0, 0.6])]


@functools.cache
def regressor(kind="global"):
    small = {"max_iter": 60, "n_predict_draws": 32, "random_state": 0}
    if kind == "mfvi":
        return MFVIRegressor((4,), max_iter=40, n_predict_draws=16, random_state=0).fit(X, Y)
    if kind == "local":
        return MetaGPRegressor((5,), input_kernel="rbf", **small).fit(X, Y)
    if kind == "two targets":
        return MetaGPRegressor((5,), **small).fit(3 * X + 1, np.stack([5 * Y - 2, X[:, 0]], axis=1))
    return MetaGPRegressor((5,), **small).fit(X, Y)


@functools.cache
def classifier():
    return MetaGPClassifier((4,), max_iter=40, n_predict_draws=16, random_state=0).fit(X, LABELS)


@functools.cache
def sampled():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HMCRegressor((2,), n_warmup=30, n_samples=20, n_chains=2, n_predict_draws=40, random_state=0)
        return model.fit(X[:, :1], Y)
