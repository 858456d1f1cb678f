"""Kernels on columns that are named, and the lengthscales of a kernel column by column."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from metaprior.kernels import RBF, ActiveDims, Linear, Matern32, Periodic, Product, Scaled, Sum, lengthscales

NAMES = ("age", "bmi", "sex")
NAMED = {
    "one": RBF().on("age"),
    "several": Matern32(0.5).on("bmi", "age"),
    "quotes": RBF().on("it's", 'so "so"'),
    "sum": RBF().on("age") + Periodic(1.5).on("sex"),
    "product": RBF().on("age") * (RBF() + Linear()).on("bmi", "sex"),
    "scaled": 2.0 * RBF(fixed=("lengthscale",)).on("bmi"),
    "name and number": RBF().on("age", 2),
    "nested": (RBF().on("age") + RBF()).on("age", "bmi"),
}
every_named = pytest.mark.parametrize("kernel", NAMED.values(), ids=NAMED)


@every_named
def test_named_kernels_have_a_repr_that_evaluates_to_an_equal_one(kernel):
    classes = (ActiveDims, Linear, Matern32, Periodic, Product, RBF, Scaled, Sum)
    assert eval(repr(kernel), {cls.__name__: cls for cls in classes}) == kernel


@every_named
def test_named_kernels_pickle_clone_and_are_set_to_their_own_parameters(kernel):
    assert pickle.loads(pickle.dumps(kernel)) == clone(kernel) == kernel.set_params(**kernel.get_params()) == kernel


def test_kernels_on_other_names_are_not_equal():
    assert RBF().on("age") != RBF().on("bmi")
    assert RBF().on("age") != RBF().on(0)


def test_names_become_numbers_and_names_again():
    named = 0.5 * RBF().on("sex") + (Matern32() * Linear()).on("bmi", "age")
    numbered = 0.5 * RBF().on(2) + (Matern32() * Linear()).on(1, 0)
    assert named.with_columns(NAMES) == numbered
    assert numbered.with_columns(NAMES) == numbered
    assert numbered.with_names(NAMES) == named
    assert numbered.with_names(None) == numbered
    assert named.column_names() == ["sex", "bmi", "age"]
    assert numbered.column_names() == []


def test_a_column_whose_name_is_not_unique_keeps_its_number():
    assert RBF().on(0, 2).with_names(["a", "a", "b"]) == RBF().on(0, "b")


def test_a_named_kernel_is_the_one_of_its_columns():
    x = np.random.default_rng(0).standard_normal((4, 3))
    kernel = RBF(0.7).on("sex", "age").with_columns(NAMES)
    np.testing.assert_allclose(kernel(x, x), RBF(0.7)(x[:, [2, 0]], x[:, [2, 0]]), rtol=1e-6)


def test_an_unknown_name_is_told_with_the_nearest_one():
    with pytest.raises(ValueError, match=r"no column 'Ages' \(did you mean 'age'\?\); the columns are 'age', 'bmi'"):
        RBF().on("Ages").with_columns(NAMES)


def test_a_name_of_several_columns_is_refused():
    with pytest.raises(ValueError, match="expected one column of this name; there are 2. Rename them"):
        RBF().on("a").with_columns(["a", "a"])


@pytest.mark.parametrize(
    "use",
    [
        lambda kernel, x: kernel(x, x),
        lambda kernel, x: kernel.diagonal(x),
        lambda kernel, x: kernel.bound_to(3),
        lambda kernel, x: kernel.standardised(np.ones(3)),
        lambda kernel, x: kernel.with_columns(None),
    ],
)
def test_names_without_a_frame_are_refused_with_what_to_do(use):
    with pytest.raises(ValueError, match=r"on\('age'\): expected a data frame .* Fit with a DataFrame .*, or give the"):
        use(RBF().on("age"), np.zeros((2, 3)))


@pytest.mark.parametrize("dims", [(), (-1,), (True,), "age"])
def test_other_columns_than_names_and_numbers_are_refused(dims):
    with pytest.raises(ValueError, match=r"dims must be column numbers \(0, 1, \.\.\.\) or the names of columns"):
        ActiveDims(RBF(), dims)


def test_lengthscales_are_told_part_by_part_and_column_by_column():
    kernel = 2.0 * RBF([3.0, 4.0]).on(2, 0) + Matern32(5.0).on(1) * (RBF(6.0) + Linear(1.0) + Periodic(7.0)).on(1)
    assert [(each.part, each.column, round(each.lengthscale, 9)) for each in lengthscales(kernel, 3)] == [
        ("RBF", 2, 3.0),
        ("RBF", 0, 4.0),
        ("Matern32", 1, 5.0),
        ("RBF 2", 1, 6.0),
    ]


def test_one_lengthscale_is_that_of_every_column():
    assert [tuple(each) for each in lengthscales(RBF(1.0), 2)] == [("RBF", 0, 1.0), ("RBF", 1, 1.0)]
