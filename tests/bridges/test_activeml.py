"""scikit-activeml with our distributions: the utilities are ours, and a loop of theirs learns."""

import numpy as np
import pytest

pytest.importorskip("skactiveml", reason='the bridge to scikit-activeml needs pip install ".[activeml]"')

from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import UncertaintySampling
from skactiveml.utils import MISSING_LABEL, unlabeled_indices
from sklearn.linear_model import BayesianRidge

from bridges.fitted import X, Y, classifier, regressor
from metaprior import MetaGPClassifier
from metaprior.baselines import ExactGPRegressor
from metaprior.bridges import PredictiveSampling

KNOWN = np.where(np.arange(24) < 8, Y, MISSING_LABEL)


@pytest.mark.parametrize("measure", ["mutual_information", "entropy", "variance"])
def test_the_rows_asked_for_are_those_of_the_largest_measure(measure):
    strategy = PredictiveSampling(measure, random_state=0)
    chosen, utilities = strategy.query(X, KNOWN, regressor(), fit_estimator=False, batch_size=3, return_utilities=True)
    expected = getattr(regressor().predict_distribution(X), measure)
    assert np.all(np.isnan(utilities[0, :8]))
    np.testing.assert_allclose(utilities[0, 8:], expected[8:], rtol=1e-9)
    assert list(chosen) == list(8 + np.argsort(-expected[8:])[:3])


def test_it_fits_a_clone_to_the_known_rows_if_asked_to():
    model = ExactGPRegressor()
    chosen = PredictiveSampling("variance", random_state=0).query(X, KNOWN, model)
    assert not hasattr(model, "x_offset_")
    variance = ExactGPRegressor().fit(X[:8], Y[:8]).predict_distribution(X[8:]).variance
    assert chosen == [8 + np.argmax(variance)]


def test_candidates_may_be_numbers_of_rows_or_rows_themselves():
    strategy = PredictiveSampling(random_state=0)
    among = strategy.query(X, KNOWN, regressor(), fit_estimator=False, candidates=np.array([10, 12, 14]))
    assert among[0] in (10, 12, 14)
    rows = strategy.query(X, KNOWN, regressor(), fit_estimator=False, candidates=X[[10, 12, 14]])
    assert X[[10, 12, 14]][rows[0]] == pytest.approx(X[among[0]])


def test_classes_are_asked_by_their_entropy_as_scikit_activeml_itself_does():
    y = np.full(24, MISSING_LABEL)
    wrapped = SklearnClassifier(MetaGPClassifier((3,), max_iter=20, random_state=0), classes=[0, 1], random_state=0)
    y[:10] = Y[:10] > np.median(Y[:10])
    theirs = UncertaintySampling(method="entropy", random_state=0)
    _, expected = theirs.query(X, y, wrapped, return_utilities=True)
    ours = PredictiveSampling("entropy", random_state=0)
    _, found = ours.query(X, y, MetaGPClassifier((3,), max_iter=20, random_state=0), return_utilities=True)
    np.testing.assert_allclose(found[0, 10:], expected[0, 10:], rtol=1e-6)
    assert len(unlabeled_indices(y)) == 14


def test_errors_say_what_was_expected():
    with pytest.raises(ValueError, match="measure: expected"):
        PredictiveSampling("margin").query(X, KNOWN, regressor(), fit_estimator=False)
    with pytest.raises(TypeError, match="expected an estimator of this library, whose distribution tells the "):
        PredictiveSampling().query(X, KNOWN, BayesianRidge())
    with pytest.raises(TypeError, match="estimator: expected a scikit-learn estimator"):
        PredictiveSampling().query(X, KNOWN, "a model")
    assert classifier().classes_.shape == (3,)
