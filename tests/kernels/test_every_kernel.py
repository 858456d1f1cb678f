"""What holds for every kernel: a new one is added to `kernel_zoo` and has to pass."""

import copy
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

from kernel_zoo import COINCIDENT, SCALES, ZOO, A, B, every_kernel, matrix_at, outer, parts_of
from metaprior import kernels
from metaprior.kernels import Custom, Periodic

NAMES = {name: getattr(kernels, name) for name in kernels.__all__}


# --- matrices --------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*ZOO.values(), Custom(outer)], ids=[*ZOO, "custom"])
def test_diagonal_equals_that_of_the_matrix(kernel):
    with jax.enable_x64(True):
        short = np.asarray(kernel.bound_to(2).diagonal(jnp.asarray(A)))
    np.testing.assert_allclose(short, np.diag(matrix_at(kernel, A, A)), rtol=1e-13)


@every_kernel
def test_gram_matrix_is_positive_semidefinite_with_coincident_points(kernel):
    assert np.linalg.eigvalsh(matrix_at(kernel, COINCIDENT, COINCIDENT)).min() >= -1e-8


@every_kernel
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float_type_of_the_points_is_that_of_matrix_diagonal_and_features(kernel, dtype):
    with jax.enable_x64(dtype == "float64"):
        a = jnp.asarray(A, dtype)
        kernel = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), kernel.bound_to(2))
        normals = jnp.ones((kernel.num_normals(2), 3), dtype)
        found = [kernel(a, a), kernel.diagonal(a), kernel.features(a, normals)]
    assert [array.dtype for array in found] == [dtype] * 3


@pytest.mark.parametrize("kernel", [*ZOO.values(), Periodic([1.3], [0.8])], ids=[*ZOO, "periodic_of_one_value"])
def test_binding_to_the_dimensions_changes_no_value(kernel):
    with jax.enable_x64(True):
        unbound = np.asarray(kernel(jnp.asarray(A), jnp.asarray(B)))
    np.testing.assert_allclose(matrix_at(kernel, A, B), unbound, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("kernel", [*ZOO.values(), Periodic(1.3, 0.8)], ids=[*ZOO, "periodic_unbound"])
def test_gradient_is_finite_and_equals_finite_differences_with_coincident_points(kernel):
    step = 1e-5
    with jax.enable_x64(True):
        leaves, rest = eqx.partition(jax.tree.map(jnp.asarray, kernel), eqx.is_inexact_array)
        flat, rebuilt = jax.flatten_util.ravel_pytree(leaves)
        weights = jnp.asarray(np.random.default_rng(1).standard_normal((6, 6)))

        def total(flat, x):
            return jnp.sum(weights * eqx.combine(rebuilt(flat), rest)(x, x))

        @jax.jit
        def both(flat, x):
            ends = jax.vmap(lambda d: jnp.stack([total(flat - d, x), total(flat + d, x)]))(step * jnp.eye(flat.size))
            return jax.grad(total, (0, 1))(flat, x), (ends[:, 1] - ends[:, 0]) / (2 * step)

        (slope, slope_x), differences = jax.tree.map(np.asarray, both(flat, jnp.asarray(COINCIDENT)))
    assert np.all(np.isfinite(slope_x))
    # central differences: step^2 times a third derivative, and rounding over the step
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-7)


# --- units -----------------------------------------------------------------------


@every_kernel
def test_standardised_kernel_at_standardised_inputs_is_the_kernel(kernel):
    moved = kernel.bound_to(2).standardised(SCALES)
    np.testing.assert_allclose(
        matrix_at(moved, A / SCALES, B / SCALES), matrix_at(kernel, A, B), rtol=1e-11, atol=1e-13
    )


@every_kernel
def test_unstandardised_undoes_standardised(kernel):
    kernel = kernel.bound_to(2)
    back = kernel.standardised(SCALES).unstandardised(SCALES)
    assert jax.tree.structure(back) == jax.tree.structure(kernel)
    for ours, start in zip(jax.tree.leaves(back), jax.tree.leaves(kernel), strict=True):
        np.testing.assert_allclose(ours, start, rtol=1e-14, atol=1e-15)


# --- parameters ------------------------------------------------------------------


def held_and_bounded(kernel):
    """Return the kernel with every hyper-parameter fixed and bounded from below by twice its largest value."""
    changes = {}
    for path, part in parts_of(kernel).items():
        lowest = {name: 2 * np.max(part.get_params()[name]) for name in part.hypers()}
        changes[f"{path}fixed"] = part.hypers()
        changes[f"{path}bounds"] = {name: (low, 3 * low) for name, low in lowest.items()}
    return kernel.set_params(**changes)


@every_kernel
def test_repr_makes_an_equal_kernel(kernel):
    for one in (kernel, held_and_bounded(kernel)):
        assert eval(repr(one), NAMES) == one


@every_kernel
def test_parameters_make_an_equal_kernel(kernel):
    for one in (kernel, held_and_bounded(kernel)):
        assert type(one)(**one.get_params(deep=False)) == one
        assert one.set_params(**one.get_params()) == one


@every_kernel
def test_every_parameter_can_be_set_by_its_name_and_the_kernel_itself_stays(kernel):
    before = repr(kernel)
    for path, part in parts_of(kernel).items():
        for name in part.hypers():
            changed = kernel.set_params(**{f"{path}{name}": 7.5})
            assert changed.get_params()[f"{path}{name}"] == 7.5
            assert changed != kernel
    assert repr(kernel) == before


@every_kernel
def test_fixed_hyper_parameters_are_never_released_and_others_at_once(kernel):
    assert set(map(float, jax.tree.leaves(kernel.release_times()))) == {0.0}
    held = held_and_bounded(kernel)
    assert set(map(float, jax.tree.leaves(held.release_times()))) == {np.inf}
    assert jax.tree.structure(held.release_times()) == jax.tree.structure(held)


@every_kernel
def test_values_outside_their_bounds_are_moved_to_the_nearest_bound(kernel):
    bounded = held_and_bounded(kernel)
    with jax.enable_x64(True):
        projected = bounded.projected()
    for path, part in parts_of(projected).items():
        for name, low, _ in part.bounds:
            np.testing.assert_allclose(np.exp(part.leaf(name)), low, rtol=1e-14, err_msg=f"{path}{name}")


def _pickled(kernel):
    return pickle.loads(pickle.dumps(kernel))


@pytest.mark.parametrize("kernel", [*ZOO.values(), Custom(outer)], ids=[*ZOO, "custom"])
@pytest.mark.parametrize("again", [copy.deepcopy, _pickled, clone])
def test_copies_are_equal_and_independent(kernel, again):
    twin = again(kernel)
    assert twin == kernel
    assert jax.tree.structure(twin) == jax.tree.structure(kernel)
    assert not any(ours is theirs for ours, theirs in zip(jax.tree.leaves(twin), jax.tree.leaves(kernel), strict=True))
    np.testing.assert_array_equal(matrix_at(twin, A, B), matrix_at(kernel, A, B))
