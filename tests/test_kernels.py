"""Kernels: their matrices against scikit-learn's, their algebra, their hyper-parameters, their complaints."""

import copy
import pickle

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.gaussian_process.kernels as sk
from hypothesis import given, settings
from hypothesis import strategies as st

from metaprior import kernels
from metaprior.kernels import RBF, Constant, Custom, Linear, Matern12, Matern32, Matern52, Periodic, RationalQuadratic

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((6, 2)), RNG.standard_normal((6, 2))
COINCIDENT = np.concatenate([A[:4], A[:2]])
SCALES = np.array([3.0, 0.2])
ARD = (0.7, 1.9)


def _outer(a, b):
    return jnp.exp(-jnp.sum(jnp.abs(a[:, None] - b[None]), axis=-1))


#: Ours, and the twin: scikit-learn's kernel on the same columns.
PAIRS = {
    "rbf": (RBF(ARD), sk.RBF(ARD)),
    "matern12": (Matern12(ARD), sk.Matern(ARD, nu=0.5)),
    "matern32": (Matern32(ARD), sk.Matern(ARD, nu=1.5)),
    "matern52": (Matern52(ARD), sk.Matern(ARD, nu=2.5)),
    "rational_quadratic_06": (RationalQuadratic(0.8, 0.6), sk.RationalQuadratic(0.8, 0.6)),
    "rational_quadratic_3": (RationalQuadratic(0.8, 3.0), sk.RationalQuadratic(0.8, 3.0)),
    "linear": (Linear(1.0), sk.DotProduct(sigma_0=0.0)),
    "linear_with_variance": (Linear(2.5), 2.5 * sk.DotProduct(sigma_0=0.0)),
    "constant": (Constant(1.7), sk.ConstantKernel(1.7)),
    "scaled": (2.5 * Matern52(ARD), sk.ConstantKernel(2.5) * sk.Matern(ARD, nu=2.5)),
    "sum": (RBF(ARD) + Linear(1.0), sk.RBF(ARD) + sk.DotProduct(sigma_0=0.0)),
    "sum_with_number": (0.5 + RBF(ARD), 0.5 + sk.RBF(ARD)),
    "product": (RBF(ARD) * Matern12(0.9), sk.RBF(ARD) * sk.Matern(0.9, nu=0.5)),
    "tree": (
        (RBF(ARD) + 2.0 * Linear(1.0)) * RationalQuadratic(1.1, 2.0) + Constant(0.3),
        (sk.RBF(ARD) + 2.0 * sk.DotProduct(sigma_0=0.0)) * sk.RationalQuadratic(1.1, 2.0) + 0.3,
    ),
}
#: Kernels that scikit-learn has not.
OURS = {
    "linear_ard": Linear([0.5, 2.0]),
    "periodic": Periodic([1.3, 2.1], [0.8, 1.5]),
    "active_dims": RBF(0.7).on(1) + Periodic(1.3, 0.8).on(0),
    "active_dims_product": Matern32(0.7).on(1) * Periodic(1.3, 0.8).on(0),
}
ZOO = {name: ours for name, (ours, _) in PAIRS.items()} | OURS
every_kernel = pytest.mark.parametrize("kernel", ZOO.values(), ids=ZOO.keys())

_matrix = eqx.filter_jit(lambda kernel, a, b: kernel(a, b))


def _at(kernel, a, b):
    """The cross-matrix in float64."""
    with jax.enable_x64(True):
        return np.asarray(_matrix(kernel.bound_to(a.shape[1]), jnp.asarray(a), jnp.asarray(b)))


# --- matrices --------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRS)
def test_matrix_equals_scikit_learns(name):
    ours, twin = PAIRS[name]
    # the twins differ in the order of a few operations on numbers of size 10
    np.testing.assert_allclose(_at(ours, A, B), twin(A, B), rtol=1e-13, atol=1e-13)


def test_periodic_in_one_dimension_equals_scikit_learns():
    twin = sk.ExpSineSquared(length_scale=0.8, periodicity=1.3)
    np.testing.assert_allclose(_at(Periodic(1.3, 0.8), A[:, :1], B[:, :1]), twin(A[:, :1], B[:, :1]), rtol=1e-13)


def test_periodic_in_two_dimensions_is_the_product_over_dimensions():
    joint = _at(Periodic([1.3, 2.1], [0.8, 1.5]), A, B)
    apart = _at(Periodic(1.3, 0.8), A[:, :1], B[:, :1]) * _at(Periodic(2.1, 1.5), A[:, 1:], B[:, 1:])
    np.testing.assert_allclose(joint, apart, rtol=1e-13)


def test_rbf_in_many_dimensions_equals_scikit_learns():
    a, b = RNG.standard_normal((5, 40)), RNG.standard_normal((3, 40))
    lengthscale = 4 + RNG.uniform(size=40)
    # |a|^2 + |b|^2 - 2ab loses some digits of a distance to cancellation
    np.testing.assert_allclose(_at(RBF(lengthscale), a, b), sk.RBF(lengthscale)(a, b), rtol=1e-12)


def test_active_dims_sees_its_columns_and_no_others():
    a, b = RNG.standard_normal((5, 4)), RNG.standard_normal((3, 4))
    kernel = Matern32([0.7, 1.9]).on(3, 1)
    np.testing.assert_array_equal(_at(kernel, a, b), _at(Matern32([0.7, 1.9]), a[:, [3, 1]], b[:, [3, 1]]))


def test_custom_kernel_is_its_function():
    with jax.enable_x64(True):
        np.testing.assert_array_equal(_at(Custom(_outer), A, B), np.asarray(_outer(jnp.asarray(A), jnp.asarray(B))))


@pytest.mark.parametrize("kernel", [*ZOO.values(), Custom(_outer)], ids=[*ZOO, "custom"])
def test_diagonal_equals_that_of_the_matrix(kernel):
    with jax.enable_x64(True):
        short = np.asarray(kernel.bound_to(2).diagonal(jnp.asarray(A)))
    np.testing.assert_allclose(short, np.diag(_at(kernel, A, A)), rtol=1e-13)


@pytest.mark.parametrize("kernel", [*ZOO.values(), Periodic([1.3], [0.8])], ids=[*ZOO, "periodic_of_one_value"])
def test_binding_to_the_dimensions_changes_no_value(kernel):
    with jax.enable_x64(True):
        unbound = np.asarray(kernel(jnp.asarray(A), jnp.asarray(B)))
    np.testing.assert_allclose(_at(kernel, A, B), unbound, rtol=1e-13, atol=1e-15)


@every_kernel
def test_gram_matrix_is_positive_semidefinite_with_coincident_points(kernel):
    assert np.linalg.eigvalsh(_at(kernel, COINCIDENT, COINCIDENT)).min() >= -1e-8


POSITIVE = st.floats(0.05, 20.0)
POINTS = st.lists(st.tuples(st.floats(-10, 10), st.floats(-10, 10)), min_size=6, max_size=6)


@pytest.mark.parametrize("family", [RBF, Matern12, Matern32, Matern52, RationalQuadratic, Periodic])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(points=POINTS, hyper=st.tuples(POSITIVE, POSITIVE))
def test_gram_matrix_is_positive_semidefinite_at_any_points(family, points, hyper):
    gram = _at(family(list(hyper)), np.array(points), np.array(points))
    # a compiled difference of two quotients may round one of them only: eps times their size, at most 10 / 0.05
    np.testing.assert_allclose(gram, gram.T, rtol=0, atol=20 * np.finfo(float).eps * 10 / 0.05)
    assert np.linalg.eigvalsh(gram).min() >= -1e-8


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


# --- hyper-parameters ------------------------------------------------------------


@every_kernel
def test_standardised_kernel_at_standardised_inputs_is_the_kernel(kernel):
    moved = kernel.bound_to(2).standardised(SCALES)
    np.testing.assert_allclose(_at(moved, A / SCALES, B / SCALES), _at(kernel, A, B), rtol=1e-11, atol=1e-13)


@every_kernel
def test_unstandardised_undoes_standardised(kernel):
    kernel = kernel.bound_to(2)
    back = kernel.standardised(SCALES).unstandardised(SCALES)
    assert jax.tree.structure(back) == jax.tree.structure(kernel)
    for ours, start in zip(jax.tree.leaves(back), jax.tree.leaves(kernel), strict=True):
        np.testing.assert_allclose(ours, start, rtol=1e-14, atol=1e-15)


def test_variance_of_a_slope_that_was_not_given_is_one_in_standardised_units():
    kernel = Linear().bound_to(2).standardised(SCALES)
    np.testing.assert_array_equal(kernel.log_variance, 0)
    np.testing.assert_allclose(np.exp(kernel.unstandardised(SCALES).log_variance), 1 / SCALES**2, rtol=1e-14)


def test_lengthscale_that_was_not_given_is_one_standardised_unit():
    kernel = RBF().bound_to(2).standardised(SCALES)
    np.testing.assert_array_equal(np.exp(kernel.log_lengthscale), 1)
    np.testing.assert_allclose(np.exp(kernel.unstandardised(SCALES).log_lengthscale), SCALES, rtol=1e-14)


def test_release_times_are_infinite_for_fixed_leaves_and_zero_for_others():
    kernel = 2.0 * RBF(fixed=("lengthscale",)) * (Periodic(1.3) + RationalQuadratic(0.8, 0.6, fixed="alpha").on(0))
    times = kernel.release_times()
    assert jax.tree.structure(times) == jax.tree.structure(kernel)
    rbf, periodic, quadratic = times.left.inner, times.right.left, times.right.right.inner
    assert (times.left.log_scale, rbf.log_lengthscale) == (0, np.inf)
    assert (periodic.log_period, periodic.log_lengthscale) == (0, 0)
    assert (quadratic.log_lengthscale, quadratic.log_alpha) == (0, np.inf)


@pytest.mark.parametrize(("start", "end"), [(0.01, 0.5), (0.7, 0.7), (9.0, 2.0)])
def test_projected_moves_bounded_leaves_inside_and_leaves_the_others(start, end):
    inner = RationalQuadratic(start, 30.0, bounds={"lengthscale": (0.5, 2.0)})
    projected = (3.0 * inner + Constant(40.0)).projected()
    found = [float(np.exp(leaf)) for leaf in jax.tree.leaves(projected)]
    expected = [float(np.exp(leaf)) for leaf in jax.tree.leaves(3.0 * RationalQuadratic(end, 30.0) + Constant(40.0))]
    assert found == pytest.approx(expected, rel=1e-6)  # outside enable_x64, jnp.clip is of float32


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (RBF(5.0, bounds={"lengthscale": (1.0, 2.0)}), "lengthscale"),
        (Periodic(5.0, bounds={"period": (4.0, 6.0)}), "period"),
        (Linear(5.0, bounds={"variance": (1.0, 2.0)}), "variance"),
    ],
)
def test_bounds_are_in_the_units_of_the_data(kernel, name):
    in_data_units = getattr(kernel.bound_to(2).projected(), f"log_{name}")
    standardised = kernel.bound_to(2).standardised(SCALES).projected().unstandardised(SCALES)
    np.testing.assert_allclose(getattr(standardised, f"log_{name}"), in_data_units, rtol=1e-6)


def test_bounds_hold_in_data_units_for_a_lengthscale_that_was_not_given():
    kernel = RBF(bounds={"lengthscale": (1.0, 2.0)}).bound_to(2).standardised(SCALES).projected()
    assert np.exp(kernel.unstandardised(SCALES).log_lengthscale) == pytest.approx([2.0, 1.0], rel=1e-6)


def test_unknown_periods_are_filled_in_from_their_columns_and_given_ones_stay():
    kernel = 2.0 * (Periodic().on(1) + RBF()) * Periodic(4.0).on(0)
    assert kernel.unknown_periods()
    filled = kernel.with_periods(np.array([5.0, 6.0])).bound_to(2)
    assert not filled.unknown_periods()
    assert np.exp(filled.left.inner.left.inner.log_period) == pytest.approx([6.0])
    assert np.exp(filled.right.inner.log_period) == pytest.approx([4.0])


@pytest.mark.parametrize("kernel", [*ZOO.values(), Custom(_outer)], ids=[*ZOO, "custom"])
@pytest.mark.parametrize("again", [copy.deepcopy, lambda k: pickle.loads(pickle.dumps(k))], ids=["copy", "pickle"])
def test_kernel_survives_copying(kernel, again):
    twin = again(kernel)
    assert jax.tree.structure(twin) == jax.tree.structure(kernel)
    np.testing.assert_array_equal(_at(twin, A, B), _at(kernel, A, B))


def test_repr_shows_natural_values():
    assert repr(RBF(2.5)) == "RBF(lengthscale=2.5)"
    assert repr((2.0 * Periodic(1.5, 0.5) + Constant(3.0)) * RBF([1.0, 2.0]).on(0, 1)) == (
        "(2 * Periodic(period=1.5, lengthscale=0.5) + Constant(value=3.)) * (RBF(lengthscale=[1., 2.])).on(0, 1)"
    )


# --- complaints ------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf, [1.0, -2.0], [[1.0]]])
@pytest.mark.parametrize("family", [RBF, Matern12, RationalQuadratic, Periodic, Linear])
def test_hyper_parameter_that_is_not_positive_and_finite_is_refused(family, value):
    with pytest.raises(ValueError, match=rf"{family.__name__}: \w+ must be a positive finite number.*got "):
        family(np.asarray(value))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF([1.0, 2.0]).bound_to(3), "RBF: lengthscale has 2 values but acts on 3 dimensions"),
        (lambda: Periodic([1.0, 2.0]).bound_to(3), "Periodic: period has 2 values but acts on 3"),
        (lambda: Linear([1.0, 2.0]).bound_to(1), "Linear: variance has 2 values but acts on 1"),
        (lambda: (RBF([1.0, 2.0]).on(1) + RBF()).bound_to(3), "2 values but acts on 1 dimensions"),
        (lambda: RBF().on(3).bound_to(3), r"column 3 was asked for, but there are 3"),
        (lambda: RBF().on(-1), r"dims must be column numbers.*got \(-1,\)"),
        (lambda: RBF().on(), "dims must be column numbers"),
        (lambda: RBF(fixed=("scale",)), r"RBF: fixed names \['scale'\].*it has \['lengthscale'\]"),
        (lambda: Periodic(fixed=("alpha",)), r"it has \['period', 'lengthscale'\]"),
        (lambda: RBF(bounds={"alpha": (1.0, 2.0)}), r"RBF: bounds for 'alpha'.*it has \['lengthscale'\]"),
        (lambda: RBF(bounds={"lengthscale": (2.0, 1.0)}), "must be 0 < lowest < highest"),
        (lambda: RationalQuadratic(1.0, -1.0), "RationalQuadratic: alpha must be a positive"),
        (lambda: Constant(0.0), "Constant: value must be a positive"),
        (lambda: -2.0 * RBF(), "Scaled: scale must be a positive"),
        (lambda: kernels.named("cubic", "input_kernel"), r"input_kernel: .*'rbf'.*got 'cubic'"),
        (lambda: kernels.named(3, "input_kernel"), "input_kernel: .*got 3"),
        (lambda: Periodic()(jnp.asarray(A), jnp.asarray(B)), "the period is not known yet; give `period=`"),
        (lambda: Custom(_outer).num_normals(2), "no random features.*'diag', 'fitc' or 'full'"),
        (lambda: Custom(_outer).features(jnp.asarray(A), jnp.zeros((1, 1))), "no random features"),
    ],
)
def test_mistake_is_named_where_it_is_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_named_kernel_is_the_kernel_of_that_name_whatever_the_case():
    assert type(kernels.named("RBF", "k")) is RBF
    assert type(kernels.named("matern52", "k")) is Matern52
    kernel = RBF(2.0)
    assert kernels.named(kernel, "k") is kernel


def test_whole_numbers_scale_and_shift_a_kernel_as_others_do():
    a, b = np.random.default_rng(0).standard_normal((2, 4, 2), np.float32)
    np.testing.assert_array_equal((2 * RBF())(a, b), (2.0 * RBF())(a, b))
    np.testing.assert_array_equal((RBF(2) + 1)(a, b), (RBF(2.0) + 1.0)(a, b))
