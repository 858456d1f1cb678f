"""Conformal estimators: their sets and intervals against slow, obvious twins, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conformal.stubs import Line, Slope, Softmax, class_rows, noisy_rows
from metaprior import MetaGPRegressor
from metaprior.conformal import ConformalClassifier, ConformalRegressor, CrossConformalRegressor, TooFewRows
from metaprior.conformal.class_scores import ClassScore, uniform_of_rows
from metaprior.conformal.interval_scores import Band

#: The quantile at 0.9 of a standard normal.
NORMAL_QUANTILE = 1.2815515655446004
X, Y = noisy_rows(np.random.default_rng(0), 60)


def test_the_interval_is_all_y_whose_score_is_at_most_the_threshold():
    for score in ("quantile", "normalised", "absolute"):
        model = ConformalRegressor(Line(0.7).fit(None, None), level=0.8, conformity_score=score).calibrate(X, Y)
        low, high = model.predict_interval(X[:5])
        inside = np.linspace(low, high, 11)
        mean, std = Line(0.7).predict(X[:5], return_std=True)
        by_hand = {
            "quantile": lambda y, m=mean, s=std: np.abs(y - m) - NORMAL_QUANTILE * s,
            "normalised": lambda y, m=mean, s=std: np.abs(y - m) / s,
            "absolute": lambda y, m=mean: np.abs(y - m),
        }[score]
        assert np.all(by_hand(inside) <= model.threshold_ + 1e-12)
        np.testing.assert_allclose(by_hand(low), model.threshold_, rtol=1e-9)
        np.testing.assert_allclose(by_hand(high), model.threshold_, rtol=1e-9)


def test_a_band_that_is_narrowed_beyond_its_middle_is_one_point():
    low, high = Band(np.zeros(1), np.full(1, 2.0), np.ones(1)).widened(-5.0)
    assert low == high == 1.0


def test_cross_conformal_ends_are_those_of_the_definition():
    folds = list(KFold(4, shuffle=True, random_state=3).split(X))
    model = CrossConformalRegressor(Slope(), level=0.8, conformity_score="normalised", cv=folds).fit(X, Y)
    new, n = X[:7], len(Y)
    low, high = model.predict_interval(new)
    for row in range(len(new)):
        lows, highs = [], []
        for i in range(n):
            (train,) = [train for train, test in folds if i in test]
            without = Slope().fit(X[train], Y[train])
            score = abs(Y[i] - without.predict(X[i : i + 1])[0]) / without.std_
            centre = without.predict(new[row : row + 1])[0]
            lows.append(centre - score * without.std_)
            highs.append(centre + score * without.std_)
        # floor(61 * 0.2) = 12 and ceil(61 * 0.8) = 49
        np.testing.assert_allclose([low[row], high[row]], [np.sort(lows)[11], np.sort(highs)[48]], rtol=1e-9)


def test_cross_conformal_intervals_do_not_depend_on_the_size_of_the_blocks(monkeypatch):
    model = CrossConformalRegressor(Slope(), conformity_score="absolute", cv=3, random_state=0).fit(X, Y)
    at_once = model.predict_interval(X)
    monkeypatch.setattr("metaprior.conformal.cross.MOST_NUMBERS", 7 * len(Y))
    np.testing.assert_array_equal(model.predict_interval(X), at_once)


@pytest.mark.parametrize("name", ["aps", "raps", "lac"])
def test_class_scores_are_those_of_their_definition(name):
    probabilities = Softmax().fit(X=np.zeros((1, 4)), y=None).predict_proba(class_rows(np.random.default_rng(1), 9)[0])
    scores, u = ClassScore(name, 0.3, 2, 7)(probabilities), uniform_of_rows(probabilities, 7)
    for row, p in enumerate(probabilities):
        for c in range(4):
            above = sum(p[k] for k in range(4) if p[k] > p[c])
            rank = 1 + sum(p[k] > p[c] for k in range(4))
            adaptive = above + u[row] * p[c]
            expected = {"aps": adaptive, "raps": adaptive + 0.3 * max(0, rank - 2), "lac": 1 - p[c]}[name]
            assert scores[row, c] == pytest.approx(expected, rel=1e-12)


def test_the_set_of_a_row_does_not_depend_on_the_rows_beside_it():
    rows, y = class_rows(np.random.default_rng(2), 200)
    model = ConformalClassifier(Softmax().fit(rows, y), random_state=0).calibrate(rows, y)
    np.testing.assert_array_equal(model.predict_set(rows)[50:60], model.predict_set(rows[50:60]))


def test_numbers_that_break_ties_are_uniform():
    u = uniform_of_rows(np.random.default_rng(3).random((4000, 3)), 1)
    counts = np.histogram(u, bins=20, range=(0, 1))[0]
    assert np.sum((counts - 200) ** 2 / 200) < 60  # chi^2 of 19 degrees of freedom: beyond it once in 3e6 times
    assert not np.any(u == uniform_of_rows(np.random.default_rng(3).random((4000, 3)), 2))


def test_fit_calibrates_on_rows_that_the_estimator_has_not_seen():
    model = ConformalRegressor(Slope(), conformity_score="absolute", calibration_size=0.25, random_state=1).fit(X, Y)
    assert len(model.scores_) == 15
    order = np.random.RandomState(1).permutation(60)
    without = Slope().fit(X[np.sort(order[15:])], Y[np.sort(order[15:])])
    held = np.sort(order[:15])
    assert model.estimator_.slope_ == without.slope_
    np.testing.assert_allclose(model.scores_, np.abs(Y[held] - without.predict(X[held])), rtol=1e-12)


def test_calibrate_leaves_the_estimator_as_it_is():
    fitted = Slope().fit(X, Y)
    before = dict(vars(fitted))
    model = ConformalRegressor(fitted, conformity_score="absolute").calibrate(X, Y)
    assert model.estimator_ is fitted
    assert vars(fitted) == before


@pytest.mark.parametrize("cls", [ConformalRegressor, CrossConformalRegressor])
def test_too_few_rows_give_infinite_intervals_and_a_warning(cls):
    options = {"cv": 2} if cls is CrossConformalRegressor else {"calibration_size": 4}
    with pytest.warns(TooFewRows, match="a level of 0.9 needs at least 9 rows of calibration; got"):
        model = cls(Slope(), level=0.9, conformity_score="absolute", **options).fit(X[:8], Y[:8])
    low, high = model.predict_interval(X[:3])
    assert np.all(low == -np.inf)
    assert np.all(high == np.inf)


def test_too_few_rows_give_sets_of_all_classes_and_a_warning():
    rows, y = class_rows(np.random.default_rng(4), 8)
    with pytest.warns(TooFewRows, match="All sets contain every class"):
        model = ConformalClassifier(Softmax().fit(rows, y)).calibrate(rows, y)
    assert np.all(model.predict_set(rows))


def test_our_own_distribution_pipelines_frames_and_string_labels_are_welcome():
    frame = pd.DataFrame(X, columns=["x"])
    small = MetaGPRegressor((3,), max_iter=20, random_state=0)
    for estimator, score in ((make_pipeline(StandardScaler(), small), "quantile"), (BayesianRidge(), "normalised")):
        model = ConformalRegressor(estimator, level=0.8, conformity_score=score, random_state=0).fit(
            frame, pd.Series(Y)
        )
        low, high = model.predict_interval(frame)
        assert np.all(low < high)
        assert model.predict(frame).shape == (60,)
    labels = np.where(Y > 1, "high", "low")
    sets = ConformalClassifier(LogisticRegression(), random_state=0).fit(frame, labels).predict_set(frame)
    assert sets.shape == (60, 2)


def test_they_clone_and_score_as_scikit_learn_asks():
    model = ConformalRegressor(LinearRegression(), conformity_score="absolute", random_state=0)
    assert clone(model).get_params()["estimator__fit_intercept"] is True
    assert len(cross_val_score(model, X, Y, cv=3)) == 3


def test_errors_say_what_was_expected():
    with pytest.raises(ValueError, match="level: expected a number between 0 and 1, such as 0.9; got 95"):
        ConformalRegressor(Slope(), level=95).fit(X, Y)
    with pytest.raises(ValueError, match="conformity_score: expected"):
        ConformalRegressor(Slope(), conformity_score="mean").fit(X, Y)
    with pytest.raises(TypeError, match="has none of them. conformity_score='absolute' needs no uncertainty"):
        ConformalRegressor(LinearRegression()).fit(X, Y)
    with pytest.raises(ValueError, match="calibration_size: expected a part between 0 and 1, or a number of rows"):
        ConformalRegressor(Slope(), calibration_size=60).fit(X, Y)
    two = LinearRegression().fit(X, np.stack([Y, Y], axis=1))
    with pytest.raises(ValueError, match="y: expected one target; the estimator predicts 2"):
        ConformalRegressor(two, conformity_score="absolute").calibrate(X, Y)
    with pytest.raises(TypeError, match="estimator: expected a classifier with predict_proba; LinearRegression has"):
        ConformalClassifier(LinearRegression()).fit(X, Y > 0)
    fitted = LogisticRegression().fit(X, np.where(Y > 1, "a", "b"))
    with pytest.raises(ValueError, match=r"expected the classes of the fit, \['a', 'b'\], .* got 'c'"):
        ConformalClassifier(fitted).calibrate(X, np.repeat("c", 60))
    with pytest.raises(ValueError, match="cv: expected folds that test each row once"):
        CrossConformalRegressor(Slope(), conformity_score="absolute", cv=[(np.arange(30), np.arange(30, 50))]).fit(X, Y)
    with pytest.raises(ValueError, match="penalty: expected a number of at least 0; got -1"):
        ConformalClassifier(Softmax(), penalty=-1).fit(X, Y)
