"""Matrices of kernels: against scikit-learn's, in many dimensions, on some columns, at any points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_zoo import PAIRS, RNG, A, B, matrix_at, outer
from metaprior.kernels import RBF, Custom, Matern12, Matern32, Matern52, Periodic, RationalQuadratic


@pytest.mark.parametrize("name", PAIRS)
def test_matrix_equals_scikit_learns(name):
    ours, twin = PAIRS[name]
    # the twins differ in the order of a few operations on numbers of size 10
    np.testing.assert_allclose(matrix_at(ours, A, B), twin(A, B), rtol=1e-13, atol=1e-13)


def test_periodic_in_one_dimension_equals_scikit_learns():
    twin = sk.ExpSineSquared(length_scale=0.8, periodicity=1.3)
    np.testing.assert_allclose(matrix_at(Periodic(1.3, 0.8), A[:, :1], B[:, :1]), twin(A[:, :1], B[:, :1]), rtol=1e-13)


def test_periodic_in_two_dimensions_is_the_product_over_dimensions():
    joint = matrix_at(Periodic([1.3, 2.1], [0.8, 1.5]), A, B)
    first, second = matrix_at(Periodic(1.3, 0.8), A[:, :1], B[:, :1]), matrix_at(Periodic(2.1, 1.5), A[:, 1:], B[:, 1:])
    np.testing.assert_allclose(joint, first * second, rtol=1e-13)


def test_rbf_in_many_dimensions_equals_scikit_learns():
    a, b = RNG.standard_normal((5, 40)), RNG.standard_normal((3, 40))
    lengthscale = 4 + RNG.uniform(size=40)
    # |a|^2 + |b|^2 - 2ab loses some digits of a distance to cancellation
    np.testing.assert_allclose(matrix_at(RBF(lengthscale), a, b), sk.RBF(lengthscale)(a, b), rtol=1e-12)


def test_active_dims_sees_its_columns_and_no_others():
    a, b = RNG.standard_normal((5, 4)), RNG.standard_normal((3, 4))
    kernel = Matern32([0.7, 1.9]).on(3, 1)
    np.testing.assert_array_equal(matrix_at(kernel, a, b), matrix_at(Matern32([0.7, 1.9]), a[:, [3, 1]], b[:, [3, 1]]))


def test_custom_kernel_is_its_function():
    with jax.enable_x64(True):
        expected = np.asarray(outer(jnp.asarray(A), jnp.asarray(B)))
    np.testing.assert_array_equal(matrix_at(Custom(outer), A, B), expected)


POSITIVE = st.floats(0.05, 20.0)
POINTS = st.lists(st.tuples(st.floats(-10, 10), st.floats(-10, 10)), min_size=6, max_size=6)


@pytest.mark.parametrize("family", [RBF, Matern12, Matern32, Matern52, RationalQuadratic, Periodic])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(points=POINTS, hyper=st.tuples(POSITIVE, POSITIVE))
def test_gram_matrix_is_positive_semidefinite_at_any_points(family, points, hyper):
    gram = matrix_at(family(list(hyper)), np.array(points), np.array(points))
    # a compiled difference of two quotients may round one of them only: eps times their size, at most 10 / 0.05
    np.testing.assert_allclose(gram, gram.T, rtol=0, atol=20 * np.finfo(float).eps * 10 / 0.05)
    assert np.linalg.eigvalsh(gram).min() >= -1e-8


def test_whole_numbers_scale_and_shift_a_kernel_as_others_do():
    a, b = np.random.default_rng(0).standard_normal((2, 4, 2), np.float32)
    np.testing.assert_array_equal((2 * RBF())(a, b), (2.0 * RBF())(a, b))
    np.testing.assert_array_equal((RBF(2) + 1)(a, b), (RBF(2.0) + 1.0)(a, b))
