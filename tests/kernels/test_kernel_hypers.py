"""Hyper-parameters: declarations, units of the data, periods that are not known, and mistakes."""

import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel_zoo import SCALES, A, B, outer
from metaprior import kernels
from metaprior.kernels import (
    RBF,
    Constant,
    Custom,
    Hyper,
    HyperKernel,
    Linear,
    Matern12,
    Matern52,
    Periodic,
    RationalQuadratic,
    Scaled,
    Stationary,
    hyper,
)

# --- declarations ----------------------------------------------------------------


class Damped(Stationary):
    """exp(-rate r^power / 2), with a hyper-parameter and a static setting of its own."""

    rate: Hyper = hyper(0.5, doc="How fast it falls.")
    power: int = eqx.field(static=True, default=2)

    def of_squared_distance(self, r2):
        return jnp.exp(-0.5 * self.rate * r2 ** (self.power / 2))


def test_declared_hyper_parameter_has_a_leaf_a_natural_value_and_an_argument():
    kernel = Damped(2.0, 3.0, power=1, bounds={"rate": (1.0, 4.0)})
    assert kernel.hypers() == ("lengthscale", "rate")
    assert [float(leaf) for leaf in jax.tree.leaves(kernel)] == [np.log(2.0), np.log(3.0)]
    assert (kernel.log_rate, kernel.power) == (np.log(3.0), 1)
    assert float(kernel.rate) == pytest.approx(3.0, rel=1e-6)
    assert repr(kernel) == "Damped(lengthscale=2.0, rate=3.0, power=1, bounds={'rate': (1.0, 4.0)})"
    assert eval(repr(kernel)) == kernel
    assert kernel.set_params(power=2) == Damped(2.0, 3.0, bounds={"rate": (1.0, 4.0)})
    assert Damped.rate.__doc__ == "How fast it falls."


@pytest.mark.parametrize(
    ("family", "arguments"),
    [
        (RBF, {"lengthscale": None}),
        (Matern52, {"lengthscale": None}),
        (RationalQuadratic, {"lengthscale": None, "alpha": 1.0}),
        (Periodic, {"period": None, "lengthscale": 1.0}),
        (Linear, {"variance": None}),
        (Constant, {"value": 1.0}),
        (Scaled, {"inner": inspect.Parameter.empty, "scale": inspect.Parameter.empty}),
        (Damped, {"lengthscale": None, "rate": 0.5, "power": 2}),
    ],
)
def test_signature_has_every_argument_by_name(family, arguments):
    found = {name: parameter.default for name, parameter in inspect.signature(family).parameters.items()}
    assert found == {**arguments, "fixed": (), "bounds": None}


def test_kernel_with_declared_fields_writes_no_constructor():
    with pytest.raises(TypeError, match="Own: the constructor follows from the declared fields; remove `__init__`"):

        class Own(HyperKernel):
            def __init__(self):
                pass


# --- units -----------------------------------------------------------------------


def test_variance_of_a_slope_that_was_not_given_is_one_in_standardised_units():
    kernel = Linear().bound_to(2).standardised(SCALES)
    np.testing.assert_array_equal(kernel.log_variance, 0)
    np.testing.assert_allclose(np.exp(kernel.unstandardised(SCALES).log_variance), 1 / SCALES**2, rtol=1e-14)


def test_lengthscale_that_was_not_given_is_one_standardised_unit():
    kernel = RBF().bound_to(2).standardised(SCALES)
    np.testing.assert_array_equal(np.exp(kernel.log_lengthscale), 1)
    np.testing.assert_allclose(np.exp(kernel.unstandardised(SCALES).log_lengthscale), SCALES, rtol=1e-14)


def test_kernel_in_data_units_again_is_as_if_its_values_were_given():
    learned = RBF().bound_to(2).standardised(SCALES).unstandardised(SCALES)
    assert learned.get_params() == {"lengthscale": pytest.approx(SCALES), "fixed": (), "bounds": None}
    np.testing.assert_allclose(learned.standardised(SCALES).log_lengthscale, 0, atol=1e-15)
    assert learned.starting_at(0.35) == learned


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
    in_data_units = kernel.bound_to(2).projected().leaf(name)
    standardised = kernel.bound_to(2).standardised(SCALES).projected().unstandardised(SCALES)
    np.testing.assert_allclose(standardised.leaf(name), in_data_units, rtol=1e-6)


def test_bounds_hold_in_data_units_for_a_lengthscale_that_was_not_given():
    kernel = RBF(bounds={"lengthscale": (1.0, 2.0)}).bound_to(2).standardised(SCALES).projected()
    assert np.exp(kernel.unstandardised(SCALES).log_lengthscale) == pytest.approx([2.0, 1.0], rel=1e-6)


def test_bounds_of_every_dimension_are_shown_and_taken_back():
    kernel = RBF(5.0, bounds={"lengthscale": (1.0, 2.0)}).bound_to(2).standardised(np.array([2.0, 0.5]))
    assert kernel.get_params()["bounds"]["lengthscale"] == (pytest.approx((0.5, 2.0)), pytest.approx((1.0, 4.0)))
    assert eval(repr(kernel)).bounds == kernel.bounds


def test_unknown_periods_are_filled_in_from_their_columns_and_given_ones_stay():
    kernel = 2.0 * (Periodic().on(1) + RBF()) * Periodic(4.0).on(0)
    assert kernel.unknown_periods()
    filled = kernel.with_periods(np.array([5.0, 6.0])).bound_to(2)
    assert not filled.unknown_periods()
    assert np.exp(filled.left.inner.left.inner.log_period) == pytest.approx([6.0])
    assert np.exp(filled.right.inner.log_period) == pytest.approx([4.0])


# --- mistakes --------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf, [1.0, -2.0], [[1.0]], "long"])
@pytest.mark.parametrize("family", [RBF, Matern12, RationalQuadratic, Periodic, Linear])
def test_hyper_parameter_that_is_not_positive_and_finite_is_refused(family, value):
    with pytest.raises(ValueError, match=rf"{family.__name__}: \w+ must be a positive finite number.*got "):
        family(np.asarray(value))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF([1.0, 2.0]).bound_to(3), r"RBF: expected lengthscale .* dimension \(3\); got 2 values"),
        (lambda: Periodic([1.0, 2.0]).bound_to(3), r"Periodic: expected period .* dimension \(3\); got 2 values"),
        (lambda: Linear([1.0, 2.0]).bound_to(1), r"Linear: expected variance .* dimension \(1\); got 2 values"),
        (lambda: (RBF([1.0, 2.0]).on(1) + RBF()).bound_to(3), r"one per dimension \(1\); got 2 values"),
        (lambda: RBF().on(3).bound_to(3), r"expected columns from 0 to 2, as the input has 3; got \(3,\)"),
        (lambda: RBF().on(-1), r"dims must be column numbers.*got \(-1,\)"),
        (lambda: RBF().on(), "dims must be column numbers"),
        (lambda: RBF(fixed=("scale",)), r"RBF: expected the names in fixed .* \['lengthscale'\]; got \['scale'\]"),
        (lambda: Periodic(fixed=("alpha",)), r"to be among \['period', 'lengthscale'\]"),
        (lambda: RBF(bounds={"alpha": (1.0, 2.0)}), r"RBF: expected the names in bounds .*; got 'alpha'"),
        (lambda: RBF(bounds={"lengthscale": (2.0, 1.0)}), "must be a pair 0 < lowest < highest"),
        (lambda: RBF(bounds={"lengthscale": 2.0}), "must be a pair 0 < lowest < highest; got 2.0"),
        (lambda: RBF(bounds=(1.0, 2.0)), r"RBF: bounds must be a dict such as \{'lengthscale': .*; got \(1.0, 2.0\)"),
        (lambda: RationalQuadratic(1.0, -1.0), "RationalQuadratic: alpha must be a positive"),
        (lambda: RationalQuadratic(1.0, [1.0, 2.0]), r"alpha must be a positive finite number; got \[1.0, 2.0\]"),
        (lambda: RationalQuadratic(1.0, None), "alpha must be a positive finite number; got None"),
        (lambda: Constant(0.0), "Constant: value must be a positive"),
        (lambda: -2.0 * RBF(), "Scaled: scale must be a positive"),
        (lambda: kernels.named("cubic", "input_kernel"), r"input_kernel: .*'rbf'.*got 'cubic'"),
        (lambda: kernels.named(3, "input_kernel"), "input_kernel: .*got 3"),
        (lambda: Periodic()(jnp.asarray(A), jnp.asarray(B)), "the period is not known yet. Give `period=`"),
        (lambda: Custom(outer).num_normals(2), "no random features.*'diag', 'fitc' or 'full'"),
        (lambda: Custom(outer).features(jnp.asarray(A), jnp.zeros((1, 1))), "no random features"),
    ],
)
def test_mistake_is_named_where_it_is_made(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: RBF(length=1.0),
            "RBF: got an unexpected keyword argument 'length'; expected lengthscale, fixed, bounds",
        ),
        (lambda: Scaled(RBF()), "Scaled: missing a required argument: 'scale'; expected inner, scale, fixed, bounds"),
    ],
)
def test_wrong_argument_is_named_beside_the_known_ones(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_named_kernel_is_the_kernel_of_that_name_whatever_the_case():
    assert type(kernels.named("RBF", "k")) is RBF
    assert type(kernels.named("matern52", "k")) is Matern52
    kernel = RBF(2.0)
    assert kernels.named(kernel, "k") is kernel
