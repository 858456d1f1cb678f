"""Random features: zero mean, and the kernel as their second moment, both to within five standard errors."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.kernels import RBF, Constant, Linear, Matern12, Matern32, Matern52, Periodic, RationalQuadratic

NUM_FEATURES = 200_000
#: Near, far and very far points: the whole of a kernel's decline.
POINTS = np.array([[0.1, -0.3], [0.5, 0.2], [-1.4, 1.1]])
#: P(|normal| > 5) = 6e-7: of the few hundred comparisons here none fails by chance.
ERRORS = 5
ARD = (0.7, 1.9)

KERNELS = {
    "rbf": RBF(ARD),
    "matern12": Matern12(ARD),
    "matern32": Matern32(ARD),
    "matern52": Matern52(ARD),
    "rational_quadratic_06": RationalQuadratic(ARD, 0.6),
    "rational_quadratic_3": RationalQuadratic(ARD, 3.0),
    "linear": Linear([0.5, 2.0]),
    "constant": Constant(1.7),
    "periodic": Periodic([1.3, 2.1], [0.8, 1.5]),
    "scaled": 2.5 * Matern32(ARD),
    "sum": RBF(ARD) + Linear(),
    "product": RBF(ARD) * Matern12(0.9),
    "product_with_itself": RBF(ARD) * RBF(ARD),
    "active_dims": RBF(0.7).on(1) + Periodic(1.3, 0.8).on(0),
    "active_dims_product": Matern32(0.7).on(1) * Periodic(1.3, 0.8).on(0),
    "tree": (RBF(ARD) + 2.0 * Linear()) * RationalQuadratic(1.1, 2.0) + Constant(0.3),
}
every_kernel = pytest.mark.parametrize("name", KERNELS)

_features = eqx.filter_jit(lambda kernel, points, normals: kernel.features(points, normals))


def _normals(kernel, seed: int = 0) -> np.ndarray:
    rows = kernel.num_normals(POINTS.shape[1])
    return np.random.default_rng(seed).standard_normal((rows, NUM_FEATURES))


@pytest.fixture(scope="module")
def drawn() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Every kernel's features and matrix at the points, in float64."""
    found = {}
    with jax.enable_x64(True):
        points = jnp.asarray(POINTS)
        for name, unbound in KERNELS.items():
            kernel = unbound.bound_to(POINTS.shape[1])
            psi = _features(kernel, points, jnp.asarray(_normals(kernel)))
            found[name] = np.asarray(psi), np.asarray(kernel(points, points))
    return found


def _assert_mean(samples: np.ndarray, expected: np.ndarray) -> None:
    """Compare the mean over the last axis; a spread of 0 (a constant kernel's) leaves rounding alone."""
    error = np.std(samples, axis=-1) / np.sqrt(samples.shape[-1])
    assert np.all(np.abs(np.mean(samples, axis=-1) - expected) <= ERRORS * error + 1e-12)
    assert np.all(error < 0.02 * (1 + np.abs(expected)))  # sharp enough to tell


@every_kernel
def test_second_moment_of_features_is_the_kernel(name, drawn):
    psi, matrix = drawn[name]
    assert psi.shape == (len(POINTS), NUM_FEATURES)
    _assert_mean(psi[:, None] * psi[None], matrix)


@every_kernel
def test_features_have_zero_mean(name, drawn):
    psi, _ = drawn[name]
    _assert_mean(psi, np.zeros(len(POINTS)))


def test_features_of_different_normals_are_uncorrelated(drawn):
    for psi, _ in drawn.values():
        _assert_mean(psi[:, 1:] * psi[:, :-1], np.zeros(len(POINTS)))


@pytest.mark.parametrize("alpha", [0.6, 3.0])
def test_gradient_in_alpha_of_rational_quadratic_features_is_unbiased(alpha):
    @jax.jit
    def with_slopes(log_alpha, points, normals):
        def both(log_alpha):
            kernel = RationalQuadratic(ARD).with_leaves({"alpha": log_alpha})
            return kernel.features(points, normals), kernel(points, points)

        return jax.jvp(both, (log_alpha,), (jnp.ones(()),))

    with jax.enable_x64(True):
        normals = jnp.asarray(_normals(RationalQuadratic(ARD), seed=1))
        (psi, _), (slope, expected) = with_slopes(jnp.log(jnp.asarray(alpha)), jnp.asarray(POINTS), normals)
        psi, slope, expected = map(np.asarray, (psi, slope, expected))
    _assert_mean(psi[:, None] * slope[None] + slope[:, None] * psi[None], expected)


def _single(tree):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)


@pytest.mark.parametrize("name", ["rbf", "matern12", "rational_quadratic_06", "periodic"])
def test_features_in_float32_have_the_same_second_moment(name, drawn):
    kernel = KERNELS[name].bound_to(POINTS.shape[1])
    psi = _features(_single(kernel), _single(POINTS), _single(_normals(kernel, seed=2)))
    assert psi.dtype == jnp.float32
    psi = np.asarray(psi, np.float64)
    _assert_mean(psi[:, None] * psi[None], drawn[name][1])


SMALL_ALPHA = RationalQuadratic(ARD, 0.1)


@pytest.mark.parametrize("kernel", [*KERNELS.values(), SMALL_ALPHA], ids=[*KERNELS, "rational_quadratic_01"])
def test_gradient_of_features_is_finite_in_float32_whatever_the_normals(kernel):
    kernel = kernel.bound_to(POINTS.shape[1])

    @jax.jit
    @jax.grad
    def slope(kernel, normals):
        psi = kernel.features(_single(POINTS), normals)
        return jnp.sum(psi * jnp.sin(jnp.arange(psi.shape[1])))

    found = slope(_single(kernel), _single(_normals(kernel, seed=3)[:, :20_000]))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found))
