"""Kernels among the parameters of estimators: names, searches, clones, text."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from metaprior import MetaGPRegressor
from metaprior.baselines import ExactGPRegressor
from metaprior.kernels import RBF, Constant, Linear, Matern32, Periodic, Scaled

X = np.linspace(0, 6, 24)[:, None]
Y = np.sin(2 * np.pi * X[:, 0] / 1.5)


# --- text ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (RBF(2.5), "RBF(lengthscale=2.5)"),
        (RBF(), "RBF()"),
        (RBF(0.5, fixed=("lengthscale",)), "RBF(lengthscale=0.5, fixed=('lengthscale',))"),
        (
            Periodic(1.7, bounds={"period": (1, 2)}),
            "Periodic(period=1.7, lengthscale=1.0, bounds={'period': (1.0, 2.0)})",
        ),
        (
            (2.0 * Periodic(1.5, 0.5) + Constant(3.0)) * RBF([1.0, 2.0]).on(0, 1),
            "(2.0 * Periodic(period=1.5, lengthscale=0.5) + Constant(value=3.0))"
            " * RBF(lengthscale=[1.0, 2.0]).on(0, 1)",
        ),
        (RBF() + (RBF() + Linear()), "RBF() + (RBF() + Linear())"),
        (2 * (RBF() * Linear()), "2.0 * (RBF() * Linear())"),
        ((RBF() + Linear()).on(1), "(RBF() + Linear()).on(1)"),
        (Scaled(RBF(), 2, fixed="scale"), "Scaled(inner=RBF(), scale=2.0, fixed=('scale',))"),
    ],
)
def test_repr_shows_the_call_that_makes_the_kernel(kernel, text):
    assert repr(kernel) == text
    assert eval(text) == kernel


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.floats(1e-300, 1e300))
def test_any_value_is_shown_so_that_it_comes_back(value):
    kernel = RBF(value)
    assert eval(repr(kernel)) == kernel


def test_value_of_fewest_digits_is_shown():
    assert RBF([0.1, 1e-7, 1 / 3, 299792458.0]).get_params()["lengthscale"] == [0.1, 1e-7, 1 / 3, 299792458.0]
    single = jax.tree.map(np.float32, RBF([0.1, 0.7])).get_params()
    assert single["lengthscale"] == [0.1, 0.7]


def test_kernel_that_is_traced_can_be_shown():
    shown = []
    jax.jit(lambda kernel: shown.append(repr(kernel)))(2.0 * RBF(0.5) + Periodic(1.0))
    assert all(name in shown[0] for name in (" * RBF(lengthscale=", " + Periodic(period="))


# --- equality --------------------------------------------------------------------


def test_kernels_are_equal_where_class_settings_and_values_are():
    assert RBF(0.5) == RBF(0.5)
    assert RBF(0.5) == jax.tree.map(np.asarray, RBF(0.5))
    for other in (RBF(0.6), RBF([0.5]), Matern32(0.5), RBF(0.5, fixed="lengthscale"), RBF() + RBF(0.5), 3, None):
        assert RBF(0.5) != other
    assert RBF() != RBF(1.0)  # one is in standardised units, the other in those of the data


# --- parameters ------------------------------------------------------------------


def test_parameters_of_a_composition_are_named_by_its_parts():
    kernel = 2.0 * RBF(0.3) + Periodic(1.5).on(0)
    found = kernel.get_params()
    assert found["left__inner__lengthscale"] == 0.3
    assert found["left__scale"] == 2.0
    assert found["right__inner__period"] == 1.5
    assert found["right__dims"] == (0,)
    assert set(kernel.get_params(deep=False)) == {"left", "right"}
    changed = kernel.set_params(left__scale=1, right__inner__period=[2.0], right__dims=(1,))
    assert changed == 1.0 * RBF(0.3) + Periodic([2.0]).on(1)
    assert kernel.set_params(left=Linear(), left__variance=2.0) == Linear(2.0) + Periodic(1.5).on(0)


def test_what_was_not_given_is_none_and_can_be_so_again():
    assert RBF().get_params() == {"lengthscale": None, "fixed": (), "bounds": None}
    assert Periodic().get_params()["period"] is None
    assert RBF(2.0).set_params(lengthscale=None) == RBF()
    assert RBF().bound_to(2).get_params()["lengthscale"] is None


@pytest.mark.parametrize(
    ("set_params", "message"),
    [
        (lambda: RBF().set_params(period=1.0), r"RBF: expected parameters among .*'lengthscale'\]; got \['period'\]"),
        (lambda: (RBF() + RBF()).set_params(middle__lengthscale=1.0), r"Sum: .*\['left', 'right'\]; got \['middle'\]"),
        (lambda: RBF().set_params(lengthscale=-1.0), "RBF: lengthscale must be a positive"),
        (
            lambda: MetaGPRegressor(input_kernel=None).set_params(input_kernel__lengthscale=1.0),
            "input_kernel: expected a kernel with the parameter 'lengthscale'; got None. Set input_kernel to a kernel",
        ),
        (lambda: MetaGPRegressor(input_kernel="rbf").set_params(input_kernel__period=1.0), "a kernel .* got 'rbf'"),
        (lambda: MetaGPRegressor(input_kernel=RBF()).set_params(input_kernel__period=1.0), r"got \['period'\]"),
        (lambda: MetaGPRegressor(input_kernel=None).set_params(kernel__period=1.0), "Invalid parameter 'kernel'"),
    ],
)
def test_unknown_parameter_is_named_beside_the_known_ones(set_params, message):
    with pytest.raises(ValueError, match=message):
        set_params()


# --- estimators ------------------------------------------------------------------


def test_estimator_reaches_the_parameters_of_its_kernel_and_leaves_the_users_kernel_alone():
    kernel = RBF(0.5, fixed=("lengthscale",))
    model = MetaGPRegressor(input_kernel=kernel)
    assert model.get_params()["input_kernel__lengthscale"] == 0.5
    assert model.set_params(input_kernel__lengthscale=2.0, max_iter=7) is model
    assert model.input_kernel == RBF(2.0, fixed=("lengthscale",))
    assert model.max_iter == 7
    assert kernel == RBF(0.5, fixed=("lengthscale",))
    model.set_params(input_kernel=Periodic(), input_kernel__period=3.0)
    assert model.input_kernel == Periodic(3.0)


def test_clone_of_an_estimator_has_an_equal_kernel_of_its_own():
    model = MetaGPRegressor(input_kernel=2.0 * RBF([0.5, 1 / 3]) + Periodic())
    twin = clone(model)
    assert twin.input_kernel == model.input_kernel
    twin.set_params(input_kernel__left__inner__lengthscale=9.0)
    assert model.input_kernel == 2.0 * RBF([0.5, 1 / 3]) + Periodic()
    assert repr(clone(model)) == repr(model)


def test_grid_search_over_a_lengthscale_finds_the_one_that_generalises():
    grid = {"input_kernel__lengthscale": [0.3, 30.0]}
    start = RBF(1.0, fixed=("lengthscale",))
    model = MetaGPRegressor((3,), input_kernel=start, max_iter=100, random_state=0)
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, Y)
    assert search.best_params_ == {"input_kernel__lengthscale": 0.3}
    fitted = search.best_estimator_
    assert fitted.input_kernel == start.set_params(lengthscale=0.3)
    assert np.asarray(fitted.input_kernel_.lengthscale) == pytest.approx([0.3], rel=1e-5)
    assert start == RBF(1.0, fixed=("lengthscale",))


def test_pipeline_reaches_the_period_of_its_models_kernel():
    model = MetaGPRegressor((3,), input_kernel=Periodic(1.0, fixed=("period",)), max_iter=5, random_state=0)
    line = Pipeline([("scale", StandardScaler(with_std=False)), ("model", model)])
    search = GridSearchCV(line, {"model__input_kernel__period": [1.5]}, cv=2, error_score="raise").fit(X, Y)
    fitted = search.best_estimator_["model"]
    assert fitted.get_params()["input_kernel__period"] == 1.5
    assert np.asarray(fitted.input_kernel_.period) == pytest.approx([1.5], rel=1e-5)
    assert line.get_params()["model__input_kernel__period"] == 1.0


def test_search_reaches_kernels_in_pipelines_and_compares_whole_kernels():
    model = ExactGPRegressor(Periodic(1.0, fixed=("period",)))
    line = make_pipeline(StandardScaler(with_std=False), model)
    name = "exactgpregressor__kernel"
    assert line.get_params()[f"{name}__period"] == 1.0
    grid = [{f"{name}__period": [0.7, 1.5]}, {name: [Linear(), RBF(), 2.0 * Matern32(5.0)]}]
    search = GridSearchCV(line, grid, cv=3, error_score="raise").fit(X, Y)
    assert search.best_params_ == {f"{name}__period": 1.5}
    assert search.best_estimator_[-1].kernel == Periodic(1.5, fixed=("period",))
    assert len(search.cv_results_["params"]) == 5
    assert model.kernel == Periodic(1.0, fixed=("period",))
