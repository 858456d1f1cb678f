"""The fast cosine and the Cholesky factor that does not fail, each against its slow, obvious twin."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from metaprior import numerics
from metaprior.numerics import (
    LARGEST_BLOCKWISE,
    LARGEST_WHOLE,
    MAX_JITTER,
    cosine,
    eigenvectors,
    inverse_of_lower,
    jittered_cholesky,
    jittered_inverse_root,
    uniform_from_normal,
)

EPS = np.finfo(np.float64).eps


def _positive_definite(size: int, seed: int = 0) -> np.ndarray:
    root = np.random.default_rng(seed).standard_normal((size, size))
    return root @ root.T + size * np.eye(size)


def _singular(size: int, seed: int = 0) -> np.ndarray:
    """A Gram matrix of rank 2."""
    root = np.random.default_rng(seed).standard_normal((size, 2))
    return root @ root.T


def _indefinite(most_negative: float) -> np.ndarray:
    """Unit mean diagonal, and one negative eigenvalue."""
    values = np.array([1.5, 1.5, 1.0 - most_negative, most_negative])
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    matrix = turn @ np.diag(values) @ turn.T
    return 0.5 * (matrix + matrix.T)


def _jittered(matrix, jitter):
    size = matrix.shape[0]
    return matrix + jitter * jnp.trace(matrix) / size * jnp.eye(size)


_cholesky, _inverse_root = jax.jit(jittered_cholesky), jax.jit(jittered_inverse_root)
_slope = jax.jit(jax.vmap(jax.grad(cosine)))


# --- cosine --------------------------------------------------------------------


@pytest.mark.parametrize("reach", [0.1, 3.0, 30.0])
def test_cosine_in_float32_is_within_a_millionth_of_numpys(reach):
    x = np.linspace(-reach, reach, 100_001).astype(np.float32)
    ours = np.asarray(cosine(jnp.asarray(x)))
    assert ours.dtype == np.float32
    assert np.max(np.abs(ours - np.cos(x.astype(np.float64)))) <= 1e-6


@pytest.mark.parametrize("reach", [0.1, 3.0, 30.0])
def test_derivative_of_cosine_in_float32_is_within_a_millionth_of_minus_sine(reach):
    x = np.linspace(-reach, reach, 100_001).astype(np.float32)
    slope = np.asarray(_slope(jnp.asarray(x)))
    assert np.max(np.abs(slope + np.sin(x.astype(np.float64)))) <= 1e-6


def test_cosine_in_float64_equals_numpys_with_its_derivative():
    x = np.linspace(-30, 30, 20_001)
    with jax.enable_x64(True):
        value = np.asarray(cosine(jnp.asarray(x)))
        slope = np.asarray(_slope(jnp.asarray(x)))
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, np.cos(x), rtol=0, atol=4 * EPS)
    np.testing.assert_allclose(slope, -np.sin(x), rtol=0, atol=4 * EPS)


def test_second_derivative_of_cosine_is_minus_cosine():
    x = np.linspace(-3, 3, 101)
    with jax.enable_x64(True):
        bend = np.asarray(jax.jit(jax.vmap(jax.grad(jax.grad(cosine))))(jnp.asarray(x)))
    np.testing.assert_allclose(bend, -np.cos(x), rtol=0, atol=4 * EPS)


def test_cosine_is_even_and_one_at_zero():
    x = jnp.linspace(0, 30, 1001, dtype=jnp.float32)
    np.testing.assert_array_equal(np.asarray(cosine(x)), np.asarray(cosine(-x)))
    assert float(cosine(jnp.zeros((), jnp.float32))) == 1.0


# --- jittered_cholesky -----------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("jitter", [1e-10, 1e-6, 1e-3])
def test_jittered_cholesky_equals_numpys_of_the_jittered_matrix(size, jitter):
    matrix = _positive_definite(size)
    with jax.enable_x64(True):
        factor, used = _cholesky(jnp.asarray(matrix), jnp.asarray(jitter))
    twin = np.linalg.cholesky(matrix + jitter * np.mean(np.diag(matrix)) * np.eye(size))
    assert float(used) == jitter
    # the condition of these matrices is below 10, so the factor is good to a few units of rounding a row
    np.testing.assert_allclose(np.asarray(factor), twin, rtol=0, atol=100 * size * EPS * np.max(np.abs(twin)))


def test_jittered_cholesky_reports_the_smallest_jitter_of_the_ladder_that_works():
    matrix = _indefinite(-3e-3)
    with jax.enable_x64(True):
        factor, used = map(np.asarray, _cholesky(jnp.asarray(matrix), jnp.asarray(1e-6)))
    assert used == pytest.approx(1e-2, rel=1e-12)  # 1e-3 leaves an eigenvalue of -2e-3
    np.testing.assert_allclose(factor @ factor.T, matrix + used * np.eye(4), atol=100 * EPS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_jittered_cholesky_of_a_singular_matrix_is_finite_and_close(dtype):
    matrix = _singular(7).astype(dtype)
    with jax.enable_x64(dtype is np.float64):
        start = np.asarray(np.finfo(dtype).eps / 100, dtype)
        factor, used = map(np.asarray, _cholesky(jnp.asarray(matrix), jnp.asarray(start)))
    assert factor.dtype == used.dtype == dtype
    assert start < used < 1000 * np.finfo(dtype).eps
    scale = np.mean(np.diag(matrix))
    size = np.max(np.diag(matrix))
    bound = used * scale + 7 * np.finfo(dtype).eps * size
    np.testing.assert_allclose(factor @ factor.T, matrix, rtol=0, atol=2 * bound)


def test_jittered_cholesky_gives_up_at_the_largest_jitter_with_a_nonfinite_factor():
    with jax.enable_x64(True):
        factor, used = _cholesky(jnp.asarray(_indefinite(-0.5)), jnp.asarray(1e-6))
    assert float(used) == MAX_JITTER
    assert not np.all(np.isfinite(factor))


def test_jittered_cholesky_ends_when_it_starts_from_no_jitter(monkeypatch):
    """Ten times nothing is nothing: the ladder needs a first rung of its own."""

    def at_most_a_hundred_turns(condition, body, state):
        for _ in range(100):
            if not condition(state):
                return state
            state = body(state)
        raise AssertionError("the ladder of jitters does not end")

    stand_in = SimpleNamespace(while_loop=at_most_a_hundred_turns, linalg=jax.lax.linalg)
    monkeypatch.setattr(numerics, "lax", stand_in)
    with jax.enable_x64(True):
        factor, used = jittered_cholesky(jnp.asarray(_indefinite(-1e-3)), jnp.asarray(0.0))
    assert 0 < float(used) <= MAX_JITTER
    assert np.all(np.isfinite(factor))


def _family(theta):
    """A symmetric matrix for every theta: derivatives along it stay symmetric."""
    base, push = jnp.asarray(_positive_definite(6)), jnp.asarray(_positive_definite(6, seed=1))
    return base + jnp.tanh(theta[0]) * push * jnp.cos(theta[1] * push)


def _score(array):
    """A function of all entries, so that a gradient sees each of them."""
    weights = jnp.asarray(np.random.default_rng(2).standard_normal(array.shape))
    return jnp.sum(weights * array) + jnp.sum(jnp.sin(array) ** 2)


THETA = np.array([0.2, 0.03])
JITTER = 0.03  # large, so that a forgotten derivative of the jitter's scale would show


@pytest.mark.parametrize(
    ("ours", "twin"),
    [
        (jittered_cholesky, jnp.linalg.cholesky),
        (jittered_inverse_root, lambda matrix: jnp.linalg.inv(jnp.linalg.cholesky(matrix))),
    ],
    ids=["cholesky", "inverse_root"],
)
def test_gradient_equals_autodiff_through_the_jittered_matrix(ours, twin):
    def fast(theta):
        return _score(ours(_family(theta), jnp.asarray(JITTER))[0])

    def slow(theta):
        return _score(twin(_jittered(_family(theta), JITTER)))

    with jax.enable_x64(True):
        derivatives = jax.jit(lambda t: (jax.grad(fast)(t), jax.jacfwd(fast)(t), jax.grad(slow)(t)))
        reverse, forward, expected = map(np.asarray, derivatives(jnp.asarray(THETA)))
    # the condition of the matrices is below 100 and the gradient passes the factor twice
    np.testing.assert_allclose(reverse, expected, rtol=1e4 * EPS)
    np.testing.assert_allclose(forward, expected, rtol=1e4 * EPS)


def test_gradient_after_a_retry_is_that_of_the_jitter_that_was_used():
    with jax.enable_x64(True):
        base = jnp.asarray(_indefinite(-3e-3))

        def fast(t):
            return _score(jittered_cholesky(base * jnp.exp(t), jnp.asarray(1e-6))[0])

        def slow(t):
            return _score(jnp.linalg.cholesky(_jittered(base * jnp.exp(t), 1e-2)))

        at = jnp.asarray(0.1)
        ours, twin = float(jax.jit(jax.grad(fast))(at)), float(jax.jit(jax.grad(slow))(at))
    # the smallest eigenvalue, 7e-3, costs some 1 / 7e-3 of the digits, twice
    np.testing.assert_allclose(ours, twin, rtol=1e6 * EPS)


def test_jitter_used_has_no_gradient():
    with jax.enable_x64(True):
        slope = jax.jit(jax.grad(lambda t: jittered_cholesky(_family(t), jnp.asarray(JITTER))[1]))
        used = slope(jnp.asarray(THETA))
    np.testing.assert_array_equal(np.asarray(used), 0)


# --- jittered_inverse_root -------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7])
def test_jittered_inverse_root_equals_numpys_inverse_of_the_factor(size):
    matrix, jitter = _positive_definite(size), 1e-4
    with jax.enable_x64(True):
        inverse, used = _inverse_root(jnp.asarray(matrix), jnp.asarray(jitter))
    factor = np.linalg.cholesky(matrix + jitter * np.mean(np.diag(matrix)) * np.eye(size))
    assert float(used) == jitter
    np.testing.assert_allclose(np.asarray(inverse), np.linalg.inv(factor), rtol=0, atol=1e3 * size * EPS)


def test_jittered_inverse_root_reports_the_jitter_of_the_factor_it_inverts():
    with jax.enable_x64(True):
        matrix, start = jnp.asarray(_indefinite(-3e-3)), jnp.asarray(1e-6)
        inverse, used = map(np.asarray, _inverse_root(matrix, start))
        factor, used_by_factor = map(np.asarray, _cholesky(matrix, start))
    assert used == used_by_factor > 1e-6
    np.testing.assert_allclose(inverse @ factor, np.eye(4), atol=1e4 * EPS)


def _lower(size: int) -> np.ndarray:
    return np.linalg.cholesky(_positive_definite(size) / size + np.eye(size))


@pytest.mark.parametrize("size", [1, 2, 3, 50, LARGEST_BLOCKWISE, LARGEST_BLOCKWISE + 1, LARGEST_WHOLE + 45])
def test_inverse_of_lower_is_lower_and_inverts(size):
    lower = _lower(size)
    with jax.enable_x64(True):
        inverse = np.asarray(inverse_of_lower(jnp.asarray(lower)))
    np.testing.assert_array_equal(np.triu(inverse, 1), 0)
    np.testing.assert_allclose(inverse @ lower, np.eye(size), atol=10 * size * EPS)


def test_inverses_of_many_are_the_inverses_of_each():
    with jax.enable_x64(True):
        many = jnp.stack([jnp.asarray(_lower(20)), 3 * jnp.asarray(_lower(20))])
        together = jax.vmap(inverse_of_lower)(many)
        np.testing.assert_allclose(together, [inverse_of_lower(own) for own in many], atol=20 * EPS)


def test_pairs_of_blocks_cover_the_lower_triangle_once():
    """Every entry below the diagonal belongs to the pair of blocks of exactly one size."""
    for size in (1, 2, 7, 16, 50):
        total = sum((mask.astype(int) for mask in numerics._pair_masks(size)), np.zeros((size, size), int))
        np.testing.assert_array_equal(total, np.tril(np.ones((size, size), int), -1))


def test_uniform_from_normal_is_the_normal_distribution_function():
    x = np.linspace(-6, 6, 101)
    with jax.enable_x64(True):
        ours = np.asarray(uniform_from_normal(jnp.asarray(x)))
    np.testing.assert_allclose(ours, norm.cdf(x), rtol=1e3 * EPS)


@pytest.mark.parametrize("gap", [0.5, 1e-3, 0.0])
def test_functions_of_a_matrix_keep_their_derivative_through_eigenvectors_and_a_finite_one_where_they_coincide(gap):
    """tr(C (A + I)^-1) by eigenvectors, against the inverse itself, in both float types."""
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    weight, moved = np.arange(1.0, 4.0), np.random.default_rng(1).standard_normal((3, 3))
    for dtype, tolerance in ((np.float32, 1e-3), (np.float64, 1e-6)):
        with jax.enable_x64(dtype == np.float64):
            matrix = jnp.asarray(basis @ np.diag([1.0, 1.0 + gap, 2.0]) @ basis.T, dtype)
            tangent, eye = jnp.asarray(moved + moved.T, dtype), jnp.eye(3, dtype=dtype)

            def by_basis(a):
                values, vectors = eigenvectors(a)
                return jnp.sum(weight.astype(a.dtype)[:, None] * vectors**2 / (1 + values))

            inverse = np.linalg.inv(np.asarray(matrix + eye, np.float64))
            exact = -np.trace(np.diag(weight) @ inverse @ np.asarray(tangent) @ inverse)
            found = float(jax.jvp(by_basis, (matrix,), (tangent,))[1])
            if gap == 0.0:  # what the two directions of one eigenspace share is left out, and nothing is blown up
                assert np.isfinite(found)
                assert abs(found) < 10 * abs(exact)
            else:
                assert found == pytest.approx(exact, rel=tolerance)


def test_the_cosine_of_any_angle_stays_between_minus_one_and_one():
    """Features of a tiny lengthscale have frequencies of 1e9: in float32 such an angle is rounding."""
    angle = jnp.asarray(np.geomspace(1, 1e30, 20_001), jnp.float32)
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(cosine)))(angle)
    for found in (value, slope):
        assert np.all(np.abs(np.asarray(found)) <= 1 + 1e-6)


@pytest.mark.parametrize("level", [0.0, 1e-37, 1e-30])
def test_a_matrix_of_nothing_has_a_finite_factor_and_inverse(level):
    """A linear kernel at constant inputs; a product of small variances."""
    matrix, jitter = jnp.full((3, 3), level, jnp.float32), jnp.asarray(1e-4, jnp.float32)
    inverse, used = jax.jit(jittered_inverse_root)(matrix, jitter)
    assert np.isfinite(np.asarray(inverse)).all()
    assert np.isfinite(np.linalg.inv(np.asarray(inverse, np.float64))).all()
    assert used == jitter
