"""The curvature of a network: Fisher information, Gauss-Newton matrix and Kronecker factors in closed form."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from metaprior.inference.curvature import dense_gauss_newton, expected_curvature, kronecker_factors
from metaprior.likelihoods import Bernoulli, Categorical, Gaussian, Poisson, StudentT
from metaprior.networks import Dense
from metaprior.weights import Point

pytestmark = pytest.mark.usefixtures("double")
X = np.random.default_rng(0).standard_normal((6, 2))


@pytest.mark.parametrize(
    ("likelihood", "f", "expected"),
    [
        (Gaussian(np.log([0.5, 2.0])), np.array([1.0, -1.0]), np.diag([4.0, 0.25])),
        (Bernoulli(), np.array([0.3]), np.array([[1 / (2 + 2 * np.cosh(0.3))]])),
        (Poisson(), np.array([0.7]), np.array([[np.exp(0.7)]])),
    ],
)
def test_expected_curvature_is_the_fisher_information(likelihood, f, expected):
    assert_allclose(expected_curvature(likelihood, jnp.asarray(f)), expected, rtol=1e-10)


def test_expected_curvature_of_classes_is_diag_p_minus_pp():
    f = np.array([0.2, -1.0, 0.5])
    p = np.exp(f) / np.exp(f).sum()
    assert_allclose(expected_curvature(Categorical(), jnp.asarray(f)), np.diag(p) - np.outer(p, p), atol=1e-12)


def test_expected_curvature_of_student_t_is_near_its_closed_form():
    likelihood = StudentT(np.log([0.5]), np.asarray(np.log(3.0)))
    closed = (5 + 1) / ((5 + 3) * 0.5**2)  # (nu + 1) / (nu + 3) / scale^2
    assert_allclose(expected_curvature(likelihood, jnp.zeros(1))[0, 0], closed, rtol=0.03)


def test_gauss_newton_is_the_sum_of_outer_products_of_jacobians():
    network, likelihood = Dense((2, 3, 2)), Gaussian(np.log([0.5, 0.7]))
    values = Point.initial(network, np.random.default_rng(0)).values
    flat = np.concatenate([v.ravel() for v in values])

    def outputs(w):
        return np.asarray(
            network([lambda h: h @ w[:9].reshape(3, 3), lambda h: h @ w[9:].reshape(4, 2)], jnp.asarray(X))
        )

    steps = 1e-6 * np.eye(len(flat))
    jacobian = np.stack([(outputs(flat + s) - outputs(flat - s)) / 2e-6 for s in steps], axis=-1)  # [6, 2, W]
    expected = np.einsum("nkv,k,nkw->vw", jacobian, [1 / 0.5**2, 1 / 0.7**2], jacobian)
    assert_allclose(dense_gauss_newton(network, likelihood, values, X, 0), expected, atol=1e-6)
    assert_allclose(dense_gauss_newton(network, likelihood, values, X, 1), expected[9:, 9:], atol=1e-6)


def test_kronecker_factors_give_the_whole_curvature_of_one_row():
    """For one row and one output H_l = a a' x g g' exactly."""
    network, likelihood = Dense((2, 3, 1)), Gaussian(np.log([0.5]))
    values = Point.initial(network, np.random.default_rng(0)).values
    whole = np.asarray(dense_gauss_newton(network, likelihood, values, X[:1], 0))
    inputs, outputs = kronecker_factors(network, likelihood, values, X[:1])
    assert_allclose(np.kron(inputs[0], outputs[0]), whole[:9, :9], rtol=1e-9, atol=1e-12)
    assert_allclose(np.kron(inputs[1], outputs[1]), whole[9:, 9:], rtol=1e-9, atol=1e-12)
