"""The Gaussians that a predictive distribution mixes: the whole of it, in the units of the data."""

import numpy as np
import pytest
from scipy.stats import norm

from metaprior import MetaGPRegressor
from metaprior.baselines import ExactGPRegressor, MFVIRegressor
from metaprior.predictive.from_sklearn import GaussianMarginals

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (20, 1))
Y = 30 + 5 * np.sin(3 * X[:, 0]) + RNG.standard_normal(20)
SMALL = {"max_iter": 20, "n_predict_draws": 16, "random_state": 0}
#: An estimator, its targets, and how many Gaussians it mixes.
CASES = {
    "integrated, two targets": (MetaGPRegressor((3,), **SMALL), np.stack([Y, -Y], axis=1), 2),
    "drawn": (MFVIRegressor((3,), **SMALL), Y, 16),
    "exact": (ExactGPRegressor(max_iter=5), Y, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_the_components_have_the_moments_and_the_distribution_function_of_the_whole(name):
    estimator, y, count = CASES[name]
    predictive = estimator.fit(X, y).predict_distribution(X)
    mean, std = predictive.gaussian_components()
    assert mean.shape == std.shape == (count, *y.shape)
    np.testing.assert_allclose(mean.mean(axis=0), predictive.mean, rtol=1e-9)
    np.testing.assert_allclose((std**2).mean(axis=0) + mean.var(axis=0), predictive.variance, rtol=1e-9)
    np.testing.assert_allclose(norm.cdf(y, mean, std).mean(axis=0), predictive.cdf(y), rtol=1e-9)


def test_counts_have_no_components():
    predictive = MFVIRegressor((3,), likelihood="poisson", **SMALL).fit(X, Y.round()).predict_distribution(X)
    with pytest.raises(AttributeError, match="gaussian_components: y is no mixture of Gaussians; use sample, quantile"):
        predictive.gaussian_components()


def test_quantiles_of_gaussian_marginals_are_those_of_the_normal_distribution():
    mean, std = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([[1.0, 0.5], [2.0, 0.1], [3.0, 1.0]])
    levels = np.array([0.1, 0.5, 0.975])
    marginals = GaussianMarginals(mean, std)
    np.testing.assert_allclose(marginals.quantile(levels), norm.ppf(levels[:, None, None], mean, std), rtol=1e-12)
    np.testing.assert_array_equal(marginals.quantile(0.1), marginals.quantile(levels)[0])
