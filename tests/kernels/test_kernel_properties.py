"""What holds for every kernel, tried on kernels that hypothesis composes."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from chosen import EPS, POSITIVE, TINY, bases, composed, few, made, numbers, on_one_column
from metaprior.kernels import Kernel

#: Rounded, so that squares of coordinates do not underflow.
POINTS = numbers(-10, 10, (5, 2)).map(lambda points: np.round(points, 12))
SCALES = numbers(1e-3, 1e3, 2)


#: Kernels of two columns: hyper-parameters one a column, or one for both, or on one column alone.
KERNELS = composed(
    st.one_of(bases(st.tuples(POSITIVE, POSITIVE).map(list)), bases(POSITIVE), on_one_column(bases(POSITIVE)))
)


def _matrix(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The cross-matrix, an operation at a time: nothing is compiled for a kernel of its own."""
    with jax.enable_x64(True):
        return np.asarray(kernel.bound_to(2)(jnp.asarray(a), jnp.asarray(b)))


@few
@given(kernel=KERNELS, points=POINTS)
def test_a_kernels_matrix_is_symmetric_positive_semidefinite_and_has_its_diagonal(kernel, points):
    kernel = made(kernel)
    gram = _matrix(kernel, points, points)
    with jax.enable_x64(True):
        diagonal = np.asarray(kernel.bound_to(2).diagonal(jnp.asarray(points)))
    # some tens of operations an entry, each right to a unit of rounding; a factor with itself is the largest entry
    rounding = 100 * EPS * np.max(diagonal)
    assert_allclose(gram, gram.T, rtol=0, atol=rounding)
    assert_allclose(diagonal, np.diag(gram), rtol=0, atol=rounding)
    assert np.linalg.eigvalsh(0.5 * (gram + gram.T)).min() >= -len(points) * rounding


@few
@given(left=KERNELS, right=KERNELS, factor=POSITIVE, a=POINTS, b=POINTS)
def test_kernels_compose_as_their_matrices_do(left, right, factor, a, b):
    left, right = made(left), made(right)
    one, other = _matrix(left, a, b), _matrix(right, a, b)
    assert_allclose(_matrix(left + right, a, b), one + other, rtol=0, atol=TINY)
    assert_allclose(_matrix(left * right, a, b), one * other, rtol=0, atol=TINY)
    assert_allclose(_matrix(factor * left, a, b), factor * one, rtol=4 * EPS, atol=TINY)  # exp(log(factor))
    assert_allclose(_matrix(left + factor, a, b), one + factor, rtol=4 * EPS, atol=4 * EPS * factor)


@few
@given(kernel=KERNELS, a=POINTS, b=POINTS)
def test_turning_points_round_turns_the_matrix_round(kernel, a, b):
    kernel = made(kernel)
    ahead, back = _matrix(kernel, a, b), _matrix(kernel, b, a)
    largest = np.sqrt(np.max(np.diag(_matrix(kernel, a, a))) * np.max(np.diag(_matrix(kernel, b, b))))
    assert_allclose(ahead, back.T, rtol=0, atol=100 * EPS * largest)
    assert np.max(np.abs(ahead)) <= largest * (1 + 100 * EPS)  # Cauchy and Schwarz


@few
@given(kernel=KERNELS, scale=SCALES)
def test_standardised_then_unstandardised_is_the_identity(kernel, scale):
    kernel = made(kernel).bound_to(2)
    back = kernel.standardised(scale).unstandardised(scale)
    assert jax.tree.structure(back) == jax.tree.structure(kernel)
    for ours, start in zip(jax.tree.leaves(back), jax.tree.leaves(kernel), strict=True):
        assert_allclose(ours, start, rtol=0, atol=4 * EPS * 2 * np.log(1e3))  # a logarithm is added and taken off


@few
@given(kernel=KERNELS, scale=SCALES, a=POINTS, b=POINTS)
def test_a_standardised_kernel_at_standardised_points_is_the_kernel(kernel, scale, a, b):
    kernel = made(kernel)
    moved = kernel.bound_to(2).standardised(scale)
    largest = np.sqrt(np.max(np.diag(_matrix(kernel, a, a))) * np.max(np.diag(_matrix(kernel, b, b))))
    # a coordinate rounds anew and is at most 10 / 0.05 lengthscales, or 2 pi times as many periods on a circle of
    # which a lengthscale is 0.05; a hyper-parameter that was exp(log) is right to some units
    error = 100 * EPS * (10 / 0.05) * 2 * np.pi / 0.05
    assert_allclose(_matrix(moved, a / scale, b / scale), _matrix(kernel, a, b), rtol=0, atol=error * largest)
