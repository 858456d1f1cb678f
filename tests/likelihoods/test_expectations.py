"""The expected log density under Gaussian functions, against draws and quadrature."""

import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.likelihoods import Bernoulli, Categorical, Gaussian, Likelihood, Poisson, StudentT
from written import quickly, random_gram

pytestmark = pytest.mark.usefixtures("double")
STUDENT = StudentT(np.log([0.7]), np.asarray(np.log(2.0)))


@quickly
def _expected_and_drawn(likelihood, mean, covariance, y, normals):
    f = mean + jnp.sqrt(covariance[:, 0]) * normals
    drawn = likelihood.log_prob(f, jnp.broadcast_to(y, f.shape))
    return likelihood.expected_log_prob(mean, covariance, y, jnp.zeros((len(mean), 0))), drawn


@pytest.mark.parametrize(
    ("likelihood", "y"), [(Bernoulli(), 1.0), (Poisson(), 3.0), (STUDENT, 0.4)], ids=["Bernoulli", "Poisson", "t"]
)
def test_expected_log_prob_of_one_function_is_that_of_many_draws(likelihood, y):
    assert likelihood.num_expectation_normals(1) == 0
    mean, spread = np.array([-1.0, 0.3, 1.2, -1.0, 0.3, 1.2])[:, None], np.repeat([0.2, 0.7], 3)[:, None, None]
    normals = np.random.default_rng(0).standard_normal((100_000, 1, 1))
    arguments = (jnp.asarray(a) for a in (mean, spread**2, np.full((6, 1), y), normals))
    found, drawn = (np.asarray(part) for part in _expected_and_drawn(likelihood, *arguments))
    np.testing.assert_array_less(np.abs(found - drawn.mean(axis=0)), 4 * drawn.std(axis=0) / np.sqrt(len(drawn)))


def test_expected_log_prob_of_gaussian_noise_is_that_of_quadrature():
    """A quadratic, so Gauss-Hermite is exact; the covariance of the two functions does not matter."""
    likelihood = Gaussian(np.log([0.3, 1.1]))
    rng = np.random.default_rng(0)
    mean, y = jnp.asarray(rng.standard_normal((4, 2))), jnp.asarray(rng.standard_normal((4, 2)))
    covariance = np.stack([random_gram(2, seed) for seed in range(4)])
    found = likelihood.expected_log_prob(mean, jnp.asarray(covariance), y, jnp.zeros((4, 0)))
    expected = np.zeros(4)
    for k in range(2):
        own = mean[:, k : k + 1], jnp.asarray(covariance[:, k : k + 1, k : k + 1]), y[:, k : k + 1], jnp.zeros((4, 0))
        expected += np.asarray(Likelihood.expected_log_prob(Gaussian(np.log([[0.3, 1.1][k]])), *own))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_expected_log_prob_of_classes_is_unbiased():
    likelihood, rng, count = Categorical(), np.random.default_rng(0), 20_000
    mean, covariance = np.array([0.5, -0.3, 1.0]), 2 * random_gram(3, 4)
    wide = [jnp.broadcast_to(jnp.asarray(a), (count, *a.shape)) for a in (mean, covariance, np.array([2.0]))]
    normals = jnp.asarray(rng.standard_normal((count, likelihood.num_expectation_normals(3))))
    found = np.asarray(quickly(likelihood.expected_log_prob)(*wide, normals))
    f = rng.multivariate_normal(mean, covariance, 200_000)
    drawn = f[:, 2] - np.logaddexp.reduce(f, axis=1)
    error = np.hypot(found.std() / np.sqrt(count), drawn.std() / np.sqrt(len(drawn)))
    assert abs(found.mean() - drawn.mean()) < 4 * error
    assert 0.4 < found.std() / drawn.std() < 0.6  # four draws a row
