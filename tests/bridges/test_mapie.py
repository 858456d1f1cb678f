"""MAPIE calibrates our estimators, and our own conformal estimators give what MAPIE gives."""

import numpy as np
import pytest

pytest.importorskip("mapie", reason='the comparison with MAPIE needs pip install ".[mapie]"')

from mapie.classification import SplitConformalClassifier
from mapie.regression import CrossConformalRegressor as MapieCross
from mapie.regression import SplitConformalRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

from bridges.fitted import LABELS, X, Y, classifier, regressor
from metaprior.conformal import ConformalClassifier, ConformalRegressor, CrossConformalRegressor

RNG = np.random.default_rng(1)
NEW = RNG.uniform(-1, 1, (10, 2))
HELD = RNG.uniform(-1, 1, (40, 2))
HELD_Y = np.sin(2 * HELD[:, 0]) + HELD[:, 1] ** 2 + 0.3 * RNG.standard_normal(40)


def test_mapie_and_we_give_the_same_intervals_around_our_regressor():
    theirs = SplitConformalRegressor(regressor(), confidence_level=0.8, prefit=True)
    mean, interval = theirs.conformalize(HELD, HELD_Y).predict_interval(NEW)
    ours = ConformalRegressor(regressor(), level=0.8, conformity_score="absolute").calibrate(HELD, HELD_Y)
    np.testing.assert_allclose(np.stack(ours.predict_interval(NEW), axis=1), interval[:, :, 0], rtol=1e-9)
    np.testing.assert_allclose(mean, regressor().predict(NEW), rtol=1e-12)


def test_mapie_and_we_give_the_same_sets_around_our_classifier():
    held = np.array(["low", "middle", "high"])[np.digitize(HELD_Y, [0.0, 0.6])]
    theirs = SplitConformalClassifier(classifier(), confidence_level=0.8, conformity_score="lac", prefit=True)
    _, sets = theirs.conformalize(HELD, held).predict_set(NEW)
    ours = ConformalClassifier(classifier(), level=0.8, conformity_score="lac", allow_empty=True, random_state=0)
    np.testing.assert_array_equal(ours.calibrate(HELD, held).predict_set(NEW), sets[:, :, 0])
    assert set(LABELS) == set(ours.classes_)


def test_mapie_and_we_give_the_same_cross_conformal_intervals():
    folds = KFold(4, shuffle=True, random_state=0)
    theirs = MapieCross(LinearRegression(), confidence_level=0.8, method="plus", cv=folds).fit_conformalize(X, Y)
    ours = CrossConformalRegressor(LinearRegression(), level=0.8, conformity_score="absolute", cv=folds).fit(X, Y)
    interval = theirs.predict_interval(NEW)[1][:, :, 0]
    np.testing.assert_allclose(np.stack(ours.predict_interval(NEW), axis=1), interval, rtol=1e-9)
