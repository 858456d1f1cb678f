"""Sums and factors that the bounds lean on, with their derivatives, against the whole matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from compared import assert_close
from metaprior.numerics import gaussian_log_density_of, grid_cross_entropy, products_of_columns, small_cholesky
from written import quickly, random_gram

EPS = np.finfo(np.float64).eps
# Condition numbers are below 1e4, and sums of a few hundred terms.
ROUNDING = {"rtol": 1e-9, "atol": 1e-9}

pytestmark = pytest.mark.usefixtures("double")


def _written_out_on_a_grid(gram_in, gram_out, noise, mean, variance):
    precision = jnp.linalg.inv(jnp.kron(gram_in, gram_out) + noise * jnp.eye(mean.size))
    m, v = mean.ravel(), variance.ravel()
    return 0.5 * (m @ precision @ m + jnp.diagonal(precision) @ v - jnp.linalg.slogdet(precision)[1])


@pytest.mark.parametrize(("num_in", "num_out"), [(4, 3), (1, 5)])
def test_cross_entropy_on_a_grid_and_its_derivatives_are_those_of_the_whole_matrix(num_in, num_out):
    rng = np.random.default_rng(0)
    grams = jnp.asarray(random_gram(num_in, 1)), jnp.asarray(random_gram(num_out, 2))
    values = jnp.asarray(rng.standard_normal((num_in, num_out))), jnp.asarray(rng.uniform(0.1, 2, (num_in, num_out)))
    arguments = (*grams, jnp.asarray(0.3), *values)
    found, expected = (
        quickly(jax.value_and_grad(f, argnums=(0, 1, 2, 3, 4)))(*arguments)
        for f in (grid_cross_entropy, _written_out_on_a_grid)
    )
    assert_close(found, expected, **ROUNDING)


def test_derivatives_of_the_cross_entropy_are_finite_where_eigenvalues_coincide():
    """A derivative of eigenvectors would divide by their differences."""
    arguments = jnp.eye(3), jnp.ones((4, 4)), jnp.asarray(0.2), jnp.ones((3, 4)), jnp.ones((3, 4))
    found, expected = (
        quickly(jax.grad(f, argnums=(0, 1, 2, 3, 4)))(*arguments) for f in (grid_cross_entropy, _written_out_on_a_grid)
    )
    assert_close(found, expected, **ROUNDING)


@pytest.mark.parametrize("size", [1, 6, 301], ids=["one", "whole", "in halves"])
def test_log_density_of_a_gaussian_and_its_derivatives_are_the_dense_ones(size):
    covariance, residual = random_gram(size, 0), np.random.default_rng(1).standard_normal(size)
    value, (by_covariance, by_residual) = quickly(jax.value_and_grad(gaussian_log_density_of, argnums=(0, 1)))(
        jnp.asarray(covariance), jnp.asarray(residual)
    )
    inverse = np.linalg.inv(covariance)
    solved = inverse @ residual
    np.testing.assert_allclose(value, stats.multivariate_normal(np.zeros(size), covariance).logpdf(residual), rtol=1e-9)
    np.testing.assert_allclose(by_covariance, 0.5 * (np.outer(solved, solved) - inverse), **ROUNDING)
    np.testing.assert_allclose(by_residual, -solved, **ROUNDING)


@pytest.mark.parametrize("size", [1, 4])
def test_small_factors_and_their_derivatives_are_those_of_cholesky(size):
    matrices = jnp.asarray(np.stack([random_gram(size, seed) for seed in range(4)]))
    slope = jnp.asarray(np.random.default_rng(9).standard_normal(matrices.shape))
    symmetric = lambda a: 0.5 * (a + jnp.swapaxes(a, 1, 2))  # noqa: E731
    found, expected = (
        quickly(jax.value_and_grad(lambda a, f=f: jnp.sum(slope * f(symmetric(a)))))(matrices)
        for f in (small_cholesky, jnp.linalg.cholesky)
    )
    np.testing.assert_allclose(small_cholesky(matrices), np.linalg.cholesky(matrices), rtol=1e-12, atol=1e-14)
    assert_close(found, expected, **ROUNDING)


SINGULAR = {
    "rank 1": np.ones((3, 3)),
    "a little indefinite": np.ones((3, 3)) - 1e-16 * np.eye(3),
    "zero in one output": np.diag([1.0, 0.0, 2.0]),
    "tiny": 1e-200 * np.ones((3, 3)),
    "zero": np.zeros((3, 3)),
}


@quickly
def _factor_and_slope(matrix):
    factor = small_cholesky(matrix[None])[0]
    return factor, jax.grad(lambda a: jnp.sum(small_cholesky(a[None])))(matrix)


@pytest.mark.parametrize("matrix", SINGULAR.values(), ids=SINGULAR)
def test_small_factor_of_a_singular_matrix_is_finite_and_so_are_its_derivatives(matrix):
    factor, slope = (np.asarray(part) for part in _factor_and_slope(jnp.asarray(matrix)))
    assert np.all(np.isfinite(factor))
    assert np.all(np.isfinite(slope))
    # a pivot of the root of a rounding error stands where there is none
    np.testing.assert_allclose(factor @ factor.T, matrix, rtol=0, atol=4 * np.sqrt(EPS) * np.trace(matrix) + 1e-250)


@pytest.mark.parametrize("num_rows", [7, 1023, 1024, 4096])
def test_products_of_columns_and_their_derivative_are_those_of_the_plain_product(num_rows):
    rng = np.random.default_rng(num_rows)
    columns, slope = rng.standard_normal((num_rows, 5)), rng.standard_normal((5, 5))

    def weighed(product):
        return lambda a: jnp.sum(slope * product(a))

    products = products_of_columns(jnp.asarray(columns))
    derivative = jax.grad(weighed(products_of_columns))(jnp.asarray(columns))
    plain = jax.grad(weighed(lambda a: a.T @ a))(jnp.asarray(columns))
    # the rounding of a sum of num_rows products, in any order
    rounding = EPS * num_rows * (np.abs(columns).T @ np.abs(columns))
    assert np.all(np.abs(products - columns.T @ columns) <= rounding)
    np.testing.assert_allclose(derivative, plain, rtol=1e-13, atol=1e-13)
