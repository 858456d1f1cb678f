"""The evidence of a GP and its gradient, against scikit-learn and finite differences."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

from metaprior import kernels
from metaprior.baselines.evidence import Evidence, Hypers
from metaprior.baselines.scikit_kernel import KernelForScikit
from metaprior.compilation import in_float64

RNG = np.random.default_rng(0)
X, NEW = RNG.standard_normal((30, 2)) * [1.0, 5.0], RNG.standard_normal((40, 2)) * [1.0, 5.0]
Y = np.sin(2 * X[:, 0]) + 0.2 * X[:, 1] + 0.1 * RNG.standard_normal(30)
DIFFERENTIATED = [
    kernels.RBF([0.7, 4.0]),
    kernels.Matern12(),
    kernels.Matern32(),
    kernels.Periodic([1.5, 9.0]) * kernels.RBF(8.0),
    kernels.RationalQuadratic(1.3, 0.6) + kernels.Linear() + 0.5,
    kernels.RBF(fixed=["lengthscale"]).on(0) + 2.0 * kernels.Matern52().on(1),
]


def evidence_of(kernel, *, noise_learned=True):
    hypers = Hypers(kernels.Scaled(kernel.bound_to(2), 1.5), 0.3)
    return Evidence(hypers, X, Y, noise_learned=noise_learned)


@pytest.mark.parametrize("noise_learned", [True, False])
@pytest.mark.parametrize("kernel", DIFFERENTIATED, ids=repr)
def test_gradient_of_the_evidence_equals_finite_differences(kernel, noise_learned):
    evidence, step = evidence_of(kernel, noise_learned=noise_learned), 1e-5
    _, gradient = evidence(evidence.theta)
    assert gradient.shape == evidence.theta.shape
    for found, move in zip(gradient, step * np.eye(len(gradient)), strict=True):
        up, down = evidence(evidence.theta + move)[0], evidence(evidence.theta - move)[0]
        # the difference of two numbers of size 100 in float64, by the step
        np.testing.assert_allclose(found, (up - down) / (2 * step), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kernel", DIFFERENTIATED, ids=repr)
def test_evidence_and_gradient_equal_those_of_scikit_learn(kernel):
    evidence = evidence_of(kernel)
    wrapped = KernelForScikit(evidence.start.kernel) + sk.WhiteKernel(0.3**2)
    gp = GaussianProcessRegressor(wrapped, alpha=0, optimizer=None).fit(evidence.x, evidence.y)
    value, gradient = gp.log_marginal_likelihood(gp.kernel_.theta, eval_gradient=True)
    gradient[-1] *= 2  # theirs is by the logarithm of the variance of the noise
    found, found_gradient = evidence(evidence.theta)
    np.testing.assert_allclose(found, value, rtol=1e-10)
    np.testing.assert_allclose(found_gradient, gradient, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", DIFFERENTIATED, ids=repr)
def test_rows_of_several_blocks_are_those_of_one(kernel):
    """150 rows are two whole blocks and a part of a third."""
    rng = np.random.default_rng(3)
    own = kernels.Scaled(kernel.bound_to(2), 1.5)
    a, b, slope = rng.standard_normal((150, 2)), rng.standard_normal((70, 2)), rng.standard_normal((150, 150))
    wrapped = KernelForScikit(own)
    with in_float64():
        whole = [np.asarray(own(jnp.asarray(a), jnp.asarray(other))) for other in (a, b)]
    matrix, derivatives = wrapped(a, eval_gradient=True)
    np.testing.assert_allclose(matrix, whole[0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(wrapped(a, b), whole[1], rtol=1e-12, atol=1e-14)
    expected = np.einsum("nm,nmp->p", slope, derivatives)
    np.testing.assert_allclose(wrapped.pulled_back(a, slope), expected, rtol=1e-9, atol=1e-9)


def test_theta_is_every_hyper_parameter_that_is_not_fixed():
    kernel = kernels.Periodic(2.0, 0.5, fixed=["period"]) + kernels.RBF([3.0, 4.0])
    wrapped = KernelForScikit(kernels.Scaled(kernel.bound_to(2), 1.5))
    np.testing.assert_allclose(np.sort(np.exp(wrapped.theta)), [0.5, 0.5, 1.5, 3.0, 4.0])
    moved = wrapped.clone_with_theta(np.arange(5.0))
    assert np.array_equal(moved.theta, np.arange(5.0))
    assert np.array_equal(moved.kernel.inner.left.log_period, wrapped.kernel.inner.left.log_period)


def test_bounds_are_the_kernels_own_and_wide_elsewhere():
    kernel = kernels.Scaled(kernels.RBF(1.0, bounds={"lengthscale": (0.5, 2.0)}).bound_to(2), 1.0)
    bounds = np.exp(KernelForScikit(kernel).bounds)
    np.testing.assert_allclose(sorted(bounds.tolist()), [[1e-5, 1e5], [0.5, 2.0], [0.5, 2.0]])


@pytest.mark.parametrize("kernel", [kernels.RBF([0.7, 4.0]), kernels.Matern32(2.0) + kernels.Linear()], ids=repr)
def test_diagonal_is_that_of_the_matrix(kernel):
    wrapped = KernelForScikit(kernel.bound_to(2))
    np.testing.assert_allclose(wrapped.diag(X), np.diag(wrapped(X)), rtol=1e-12)
    np.testing.assert_allclose(wrapped(X, NEW), wrapped(NEW, X).T, rtol=1e-12)
