"""Columns with names: input kernels that act on them, and what a fitted model tells of them."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

import metaprior
from metaprior import MetaGPClassifier, MetaGPRegressor, relevance
from metaprior.baselines import ExactGPRegressor
from metaprior.diagnosis.checks.bounds import _fitted_kernels, parts_of
from metaprior.estimators import fit_together
from metaprior.kernels import RBF, Linear

X = np.random.default_rng(0).uniform(-1, 1, (40, 2))
Y = np.sin(3 * X[:, 1])
FRAME = pd.DataFrame(X, columns=["age", "bmi"])
QUICK = {"hidden_layer_sizes": (5,), "max_iter": 60, "n_predict_draws": 16, "random_state": 0}
NAMED, NUMBERED = RBF().on("bmi") + Linear().on("age"), RBF().on(1) + Linear().on(0)


@pytest.fixture(scope="module")
def named():
    return MetaGPRegressor(**QUICK, input_kernel=NAMED).fit(FRAME, Y)


@pytest.fixture(scope="module")
def numbered():
    return MetaGPRegressor(**QUICK, input_kernel=NUMBERED).fit(X, Y)


def test_names_give_the_model_of_the_numbers(named, numbered):
    np.testing.assert_array_equal(named.predict(FRAME), numbered.predict(X))


def test_the_names_are_those_of_the_frame_that_is_fitted(numbered):
    swapped = MetaGPRegressor(**QUICK, input_kernel=NAMED).fit(FRAME[["bmi", "age"]], Y)
    np.testing.assert_allclose(swapped.predict(FRAME[["bmi", "age"]]), numbered.predict(X), atol=0.2)


def test_the_fitted_kernel_is_shown_by_name(named):
    assert named.input_kernel_.column_names() == ["bmi", "age"]
    assert repr(named.input_kernel_).count(".on('bmi')") == 1
    assert named.input_kernel == NAMED


def test_a_kernel_on_numbers_is_shown_by_name_where_columns_have_names(named):
    model = MetaGPRegressor(**QUICK, input_kernel=NUMBERED).fit(FRAME, Y)
    assert model.input_kernel_ == named.input_kernel_


def test_the_fitted_kernel_can_be_fitted_again(named):
    again = MetaGPRegressor(**{**QUICK, "max_iter": 1}, input_kernel=named.input_kernel_).fit(FRAME, Y)
    assert again.input_kernel_.column_names() == ["bmi", "age"]


def test_names_survive_files_pickles_and_copies(named, tmp_path):
    named.save(tmp_path / "model.metaprior")
    for other in (
        metaprior.load(tmp_path / "model.metaprior"),
        pickle.loads(pickle.dumps(named)),
        copy.deepcopy(named),
    ):
        assert other.input_kernel == NAMED
        assert other.input_kernel_ == named.input_kernel_
        assert relevance(other) == relevance(named)
        np.testing.assert_array_equal(other.predict(FRAME), named.predict(FRAME))


def test_fits_side_by_side_find_names(named):
    models = [MetaGPRegressor(**QUICK, input_kernel=NAMED) for _ in range(2)]
    fit_together(models, [(FRAME, Y), (FRAME, Y)])
    assert [model.input_kernel_.column_names() for model in models] == [["bmi", "age"]] * 2
    np.testing.assert_allclose(models[0].predict(FRAME), named.predict(FRAME), rtol=1e-4, atol=1e-4)


def test_a_fit_with_checkpoints_finds_names(named, tmp_path):
    kept = MetaGPRegressor(**QUICK, input_kernel=NAMED).fit(FRAME, Y, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(kept.predict(FRAME), named.predict(FRAME))
    again = MetaGPRegressor(**QUICK, input_kernel=NAMED).fit(FRAME, Y, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(again.predict(FRAME), named.predict(FRAME))


def test_a_search_tries_kernels_on_named_columns():
    grid = {"kernel": [RBF().on("age"), RBF().on("bmi")]}
    search = GridSearchCV(ExactGPRegressor(noise=0.1, max_iter=0), grid, cv=2).fit(FRAME, Y)
    assert search.best_params_["kernel"] == RBF().on("bmi")


def test_the_columns_of_a_kernel_are_a_parameter():
    model = MetaGPRegressor(input_kernel=RBF().on("age")).set_params(input_kernel__dims=("bmi", "age"))
    assert model.input_kernel == RBF().on("bmi", "age")


def test_an_exact_gp_finds_names():
    model = ExactGPRegressor(NAMED, max_iter=5, random_state=0).fit(FRAME, Y)
    other = ExactGPRegressor(NUMBERED, max_iter=5, random_state=0).fit(X, Y)
    assert model.kernel_.column_names() == ["bmi", "age"]
    np.testing.assert_array_equal(model.predict(FRAME), other.predict(X))
    assert [each.column for each in relevance(model)] == ["bmi"]


@pytest.mark.parametrize("cls", [MetaGPRegressor, MetaGPClassifier])
def test_an_unknown_name_is_refused_before_training(cls):
    with pytest.raises(ValueError, match=r"no column 'bmj' \(did you mean 'bmi'\?\)"):
        cls(input_kernel=RBF().on("bmj")).fit(FRAME, Y > 0)


def test_names_without_a_frame_are_refused_before_training():
    with pytest.raises(ValueError, match="Fit with a DataFrame"):
        MetaGPRegressor(input_kernel=NAMED).fit(X, Y)


def test_names_of_projected_inputs_are_refused():
    with pytest.raises(ValueError, match=r"projected inputs, which have no names; got the columns \['bmi', 'age'\]"):
        MetaGPRegressor(input_kernel=NAMED, input_projection=1).fit(FRAME, Y)


def test_a_diagnosis_reads_kernels_on_named_columns(named):
    (kernel,) = _fitted_kernels(SimpleNamespace(estimator=named)).values()
    assert [own.dims for own in parts_of(kernel, "input_kernel", (0, 1))] == [(1,), (0,)]


# --- relevance ------------------------------------------------------------------------


def test_relevance_tells_lengthscales_by_name_in_both_units(numbered):
    model = MetaGPRegressor(**QUICK, input_kernel="rbf").fit(FRAME * [1.0, 100.0], Y)
    found = relevance(model)
    assert [(each.column, each.part) for each in found] == [("age", "RBF"), ("bmi", "RBF")]
    np.testing.assert_allclose([each.lengthscale for each in found], model.input_kernel_.lengthscale, rtol=1e-6)
    spread = np.std(X, axis=0) * [1.0, 100.0]
    np.testing.assert_allclose([e.relative for e in found], [e.lengthscale for e in found] / spread, rtol=1e-12)
    assert [each.column for each in relevance(numbered)] == ["x1"]


@pytest.mark.parametrize(
    ("settings", "what"),
    [({"input_kernel": None}, "has none"), ({"input_kernel": "rbf", "input_projection": 1}, "projection of them")],
)
def test_relevance_needs_a_kernel_on_the_columns(settings, what):
    model = MetaGPRegressor(**{**QUICK, "max_iter": 1}, **settings).fit(X, Y)
    with pytest.raises(ValueError, match=f"relevance: expected .*{what}"):
        relevance(model)
