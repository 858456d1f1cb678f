"""compare: the same folds for every estimator, scored as loops over folds would score them."""

import importlib
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import FitFailedWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import metaprior
from metaprior import MetaGPClassifier, MetaGPRegressor, compare, metrics
from metaprior.predictive.from_sklearn import GaussianMarginals

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (24, 2))
Y = 3 * X[:, 0] - X[:, 1] + 0.3 * RNG.standard_normal(24)
LABELS = np.where(X[:, 0] + 0.5 * RNG.standard_normal(24) > 0, "yes", "no")
SMALL = {"hidden_layer_sizes": (3,), "n_inducing": 4, "n_predict_draws": 8, "max_iter": 20, "random_state": 0}
REGRESSION = ["rmse", "nll", "crps", "calibration_error", "coverage_50", "coverage_90", "coverage_95"]
CLASSIFICATION = ["accuracy", "nll", "brier", "calibration_error", "entropy"]
TIMES = ["fit_seconds", "predict_seconds"]


class Counted(RegressorMixin, BaseEstimator):
    """A Gaussian of the training mean; it fails where a row of the training data is marked."""

    fits = 0

    def __init__(self, mark=None):
        self.mark = mark

    def fit(self, X, y):
        Counted.fits += 1
        if self.mark is not None and self.mark in np.asarray(X):
            raise ValueError("a marked row")
        self.moments_ = np.mean(y), np.std(y)
        return self

    def predict(self, X, return_std=False):
        mean, std = (np.full(len(X), value) for value in self.moments_)
        return (mean, std) if return_std else mean


@pytest.fixture(scope="module")
def estimators():
    return [MetaGPRegressor(**SMALL, input_kernel=None), BayesianRidge(), GaussianProcessRegressor(RBF(), alpha=0.1)]


@pytest.fixture(scope="module")
def table(estimators):
    return compare(estimators, X, Y, cv=3, verbose=False)


# --- the table --------------------------------------------------------------------


def test_table_has_a_row_an_estimator_and_a_mean_and_an_error_a_score(table):
    assert set(table.index) == {"MetaGPRegressor", "BayesianRidge", "GaussianProcessRegressor"}
    assert list(table.columns) == [(name, kind) for name in REGRESSION + TIMES for kind in ("mean", "se")]
    assert np.all(np.isfinite(table.to_numpy()))


def test_best_nll_comes_first(table):
    assert table["nll", "mean"].is_monotonic_increasing


def test_scores_are_those_of_a_loop_over_folds(table, estimators):
    for estimator in estimators[:2]:
        found = []
        for train, test in KFold(3).split(X):
            model = clone(estimator).fit(X[train], Y[train])
            if isinstance(model, MetaGPRegressor):
                found.append(metrics.scores(model.predict_distribution(X[test]), Y[test]))
            else:
                found.append(metrics.scores(GaussianMarginals(*model.predict(X[test], return_std=True)), Y[test]))
        row = table.loc[type(estimator).__name__]
        for name in REGRESSION:
            values = np.array([fold[name] for fold in found])
            assert_allclose(row[name, "mean"], np.mean(values), rtol=1e-6, atol=1e-9)
            assert_allclose(row[name, "se"], np.sqrt(np.var(values, ddof=1) / 3), rtol=1e-6, atol=1e-9)


def test_values_of_every_fold_are_kept_as_plain_data_and_give_the_means(table):
    folds = table.attrs["folds"]
    assert [(fold["estimator"], fold["fold"]) for fold in folds[:4]] == [
        ("MetaGPRegressor", 1),
        ("MetaGPRegressor", 2),
        ("MetaGPRegressor", 3),
        ("BayesianRidge", 1),
    ]
    assert all(type(fold[name]) is float for fold in folds for name in REGRESSION + TIMES)
    for name in table.index:
        nll = [fold["nll"] for fold in folds if fold["estimator"] == name]
        assert_allclose(table.loc[name, ("nll", "mean")], np.mean(nll), rtol=1e-12)


def test_table_pickles_and_joins_with_another(table):
    again = pickle.loads(pickle.dumps(table))
    pd.testing.assert_frame_equal(again, table)
    assert again.attrs == table.attrs
    assert len(pd.concat([table, again])) == 6


def test_estimators_stay_as_they_are(table, estimators):
    assert not any(hasattr(estimator, "n_features_in_") for estimator in estimators)


def test_one_fold_has_no_standard_error():
    table = compare([Counted()], X, Y, cv=[(np.arange(20), np.arange(20, 24))], verbose=False)
    assert np.all(np.isfinite(table.xs("mean", axis=1, level=1)))
    assert np.all(np.isnan(table.xs("se", axis=1, level=1)))


# --- classes ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def class_table():
    estimators = {"network": MetaGPClassifier(**SMALL, input_kernel=None), "logistic": LogisticRegression()}
    return compare(estimators, X, LABELS, cv=3, verbose=False)


def test_classifiers_get_the_scores_of_classes(class_table):
    assert set(class_table.index) == {"network", "logistic"}
    assert list(class_table.columns.get_level_values(0).unique()) == CLASSIFICATION + TIMES
    assert np.all(np.isfinite(class_table.to_numpy()))


def test_folds_of_classes_are_stratified_and_labels_may_be_words(class_table):
    folds = StratifiedKFold(3).split(X, LABELS)
    accuracy = [LogisticRegression().fit(X[a], LABELS[a]).score(X[b], LABELS[b]) for a, b in folds]
    assert class_table.loc["logistic", ("accuracy", "mean")] == pytest.approx(np.mean(accuracy))


def test_a_class_that_is_tested_but_not_trained_on_is_refused():
    labels = np.array(["a", "b"] * 11 + ["rare", "a"])
    with pytest.raises(ValueError, match=r"fold 3 tests classes that its training rows lack, \['rare'\]; use fewer"):
        compare([LogisticRegression()], X, labels, cv=KFold(3), verbose=False)


# --- data and folds ---------------------------------------------------------------


def scores_of(*args, **kwargs):
    table = compare(*args, **kwargs, verbose=False)
    return table.drop(columns=TIMES, level=0)


def test_frames_lists_and_arrays_give_the_same_table():
    index = RNG.permutation(100)[:24]
    frame, series = pd.DataFrame(X, index, ["a", "b"]), pd.Series(Y, index)
    expected = scores_of([BayesianRidge()], X, Y, cv=4)
    pd.testing.assert_frame_equal(scores_of([BayesianRidge()], frame, series, cv=4), expected)
    pd.testing.assert_frame_equal(scores_of([BayesianRidge()], X.tolist(), Y.tolist(), cv=4), expected)


def test_cv_may_be_a_number_a_splitter_or_splits():
    expected = scores_of([Counted()], X, Y, cv=KFold(4))
    pd.testing.assert_frame_equal(scores_of([Counted()], X, Y, cv=4), expected)
    pd.testing.assert_frame_equal(scores_of([Counted()], X, Y, cv=KFold(4).split(X)), expected)
    assert len(compare([Counted()], X, Y, cv=ShuffleSplit(7), verbose=False).attrs["folds"]) == 7


def test_random_state_shuffles_the_folds():
    expected = scores_of([Counted()], X, Y, cv=KFold(4, shuffle=True, random_state=3))
    pd.testing.assert_frame_equal(scores_of([Counted()], X, Y, cv=4, random_state=3), expected)
    with pytest.raises(ValueError, match="expected None unless cv is a whole number; cv=KFold.*has its own"):
        compare([Counted()], X, Y, cv=KFold(4), random_state=3)


def test_several_targets_are_scored_together():
    both = np.column_stack([Y, -Y])
    estimators = [MetaGPRegressor(**SMALL, input_kernel=None), GaussianProcessRegressor(RBF(), alpha=0.1)]
    table = compare(estimators, X, both, cv=2, verbose=False)
    assert np.all(np.isfinite(table.to_numpy()))


def test_pipelines_and_searches_answer_as_the_estimator_at_their_end():
    network = MetaGPRegressor(**SMALL, input_kernel=None)
    search = GridSearchCV(BayesianRidge(), {"alpha_1": [1e-6]})
    scaled = make_pipeline(StandardScaler(), network)
    table = scores_of({"n": network, "s": scaled, "search": search, "ridge": BayesianRidge()}, X, Y, cv=2)
    assert_allclose(table.loc["s"], table.loc["n"], rtol=1e-2)  # inputs are standardised inside, too
    assert_allclose(table.loc["search"], table.loc["ridge"], rtol=1e-12)


# --- names ------------------------------------------------------------------------


def names(estimators):
    return sorted({fold["estimator"] for fold in compare(estimators, X, Y, cv=2, verbose=False).attrs["folds"]})


def test_estimators_of_one_class_are_named_by_what_they_differ_in():
    assert names([Counted(), Counted(mark=7.0), BayesianRidge()]) == [
        "BayesianRidge",
        "Counted(mark=7.0)",
        "Counted(mark=None)",
    ]
    kernels = [GaussianProcessRegressor(k, alpha=0.1) for k in (RBF(), RBF(2.0), None)]
    assert "GaussianProcessRegressor(kernel=RBF(length_scale=2))" in names(kernels)


def test_equal_estimators_are_numbered():
    assert names([Counted(), Counted(), Counted()]) == ["Counted", "Counted #2", "Counted #3"]


def test_pipelines_are_named_by_their_steps():
    piped = [make_pipeline(StandardScaler(), BayesianRidge(max_iter=n)) for n in (100, 200)]
    stem = "StandardScaler > BayesianRidge"
    assert names(piped) == [f"{stem}(bayesianridge__max_iter={n})" for n in (100, 200)]


# --- mistakes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            StandardScaler(),
            "StandardScaler: expected an estimator that predicts its uncertainty.*StandardScaler has none",
        ),
        (make_pipeline(StandardScaler(), StandardScaler()), "StandardScaler has none of them"),
        (BayesianRidge, "expected a scikit-learn estimator; got .*make an instance of it"),
        ("ridge", "expected a scikit-learn estimator; got 'ridge'"),
    ],
)
def test_an_estimator_without_a_distribution_is_refused_before_any_fit(wrong, message):
    Counted.fits = 0
    with pytest.raises(TypeError, match=message):
        compare([Counted(), wrong], X, Y, verbose=False)
    assert Counted.fits == 0


@pytest.mark.parametrize(
    "values_only",
    [
        LinearRegression(),
        make_pipeline(StandardScaler(), LinearRegression()),
        GridSearchCV(LinearRegression(), {}, cv=2),
    ],
)
def test_a_regressor_of_values_alone_has_its_rmse_and_nothing_else(values_only):
    table = compare({"values": values_only, "ridge": BayesianRidge()}, X, Y, cv=4, verbose=False)
    expected = [np.mean((clone(values_only).fit(X[a], Y[a]).predict(X[b]) - Y[b]) ** 2) for a, b in KFold(4).split(X)]
    assert_allclose(table.loc["values", ("rmse", "mean")], np.mean(np.sqrt(expected)), rtol=1e-10)
    scored = table.loc["values"].unstack().dropna().index
    assert set(scored) == {"rmse", *TIMES}
    assert table.loc["ridge"].notna().all()
    assert list(table.index) == ["ridge", "values"]


def test_a_classifier_without_probabilities_is_refused():
    with pytest.raises(TypeError, match="RidgeClassifier has none of them"):
        compare([RidgeClassifier()], X, LABELS, verbose=False)


def test_classifiers_among_regressors_are_refused():
    with pytest.raises(ValueError, match=r"\['LogisticRegression'\] are classifiers, \['BayesianRidge'\] are not"):
        compare([BayesianRidge(), LogisticRegression()], X, LABELS, verbose=False)


@pytest.mark.parametrize("wrong", [[], {}, BayesianRidge(), None])
def test_anything_but_a_list_or_a_dict_of_estimators_is_refused(wrong):
    with pytest.raises(ValueError, match="estimators: expected a list of estimators or a dict of them by name; got"):
        compare(wrong, X, Y, verbose=False)


def test_rows_of_different_number_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        compare([Counted()], X, Y[:-1], verbose=False)


def test_a_failure_names_the_estimator_and_the_fold():
    with pytest.raises(RuntimeError, match="bad, fold 2 of 4: ValueError: a marked row"):
        compare({"good": Counted(), "bad": Counted(X[0, 0])}, X, Y, cv=4, verbose=False)


def test_a_failure_can_be_recorded_as_nan_instead():
    with pytest.warns(FitFailedWarning, match="fold 2 of 4: scores are NaN after ValueError: a marked row") as caught:
        table = compare({"bad": Counted(X[0, 0]), "good": Counted()}, X, Y, cv=4, error_score=np.nan, verbose=False)
    assert len(caught) == 3
    assert list(table.index) == ["good", "bad"]
    assert np.all(np.isnan(table.loc["bad"]))
    assert np.all(np.isfinite(table.loc["good"]))
    nll = [fold["nll"] for fold in table.attrs["folds"] if fold["estimator"] == "bad"]
    assert np.isfinite(nll[0])
    assert np.all(np.isnan(nll[1:]))


@pytest.mark.filterwarnings("ignore:bad, fold")
def test_failure_everywhere_is_an_error_all_the_same():
    with pytest.raises(RuntimeError, match="every estimator failed in every fold"):
        compare({"bad": Counted(X[0, 0])}, X, Y, cv=[([0, 1], [2])] * 2, error_score=np.nan, verbose=False)


@pytest.mark.parametrize("wrong", ["ignore", 0.0, None])
def test_error_score_is_raise_or_nan(wrong):
    with pytest.raises(ValueError, match="error_score: expected 'raise' or nan; got"):
        compare([Counted()], X, Y, error_score=wrong)


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r'compare needs pandas.* pip install "\.\[compare\]"'):
        compare([Counted()], X, Y)


# --- progress ---------------------------------------------------------------------


def test_progress_goes_to_stderr_where_it_is_asked_for(capfd):
    compare([Counted()], X, Y, cv=2, verbose=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "2/2" in err
    compare([Counted()], X, Y, cv=2, verbose=False)
    assert capfd.readouterr() == ("", "")


def test_compare_stays_a_function_whatever_was_imported():
    module = importlib.import_module("metaprior.comparison")
    assert metaprior.compare is module.compare
