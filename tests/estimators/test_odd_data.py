"""Odd data (constant, single, repeated, tiny, huge, wide) end in finite predictions or in an error that says why."""

import warnings

import numpy as np
import pytest

from every_estimator import CLASSIFIERS, DRAWN, REGRESSORS

RNG = np.random.default_rng(0)
ROWS = 12
X = RNG.uniform(-2, 2, (ROWS, 2))
Y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * RNG.standard_normal(ROWS)
CONSTANT_COLUMN = np.column_stack([X[:, 0], np.full(ROWS, 3.0)])

#: Data of two columns, so that one compiled program serves all of them: inputs, and targets in their units.
DATA = {
    "constant features": (np.full((ROWS, 2), 3.0), Y),
    "features of zeros": (np.zeros((ROWS, 2)), Y),
    "one constant feature": (CONSTANT_COLUMN, Y),
    "constant targets": (X, np.full(ROWS, 5.0)),
    "targets of zeros": (X, np.zeros(ROWS)),
    "all constant": (np.ones((ROWS, 2)), np.ones(ROWS)),
    "one row": (X[:1], Y[:1]),
    "two rows": (X[:2], Y[:2]),
    "repeated rows": (np.repeat(X[:3], 4, axis=0), np.repeat(Y[:3], 4)),
    "repeated rows that disagree": (np.repeat(X[:3], 4, axis=0), Y),
    "targets of 1e-12": (X, 1e-12 * Y),
    "targets of 1e12": (X, 1e12 * Y),
    "targets near 1e12": (X, 1e12 + Y),
    "features of 1e-12": (1e-12 * X, Y),
    "features of 1e12": (1e12 * X, Y),
    "features near 1e12": (1e12 + X, Y),
    "one outlier": (X, np.where(np.arange(ROWS) == 3, 1e9, Y)),
}
LABELS = np.array(["cold", "mild", "warm"])
#: Every step costs the cube of the number of units, or of weights, as their documentation says.
CUBIC = ("full", "hmc metagp")
WIDE = {width: RNG.standard_normal((ROWS, width)) for width in (1, 300, 5000)}

pytestmark = pytest.mark.filterwarnings("ignore:the chains mix poorly", "ignore:the median distance", "ignore:the feat")


def assert_finite_regression(model, x: np.ndarray, y: np.ndarray) -> None:
    """Every usual answer is finite, at the data and far from them, and of the size of the targets."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's, of divisions by zero and overflows
        predicted = model.fit(x, y).predict_distribution(np.concatenate([x, x + 1, -10 * x]))
        low, high = predicted.interval(0.9)
    here = slice(0, len(x))
    assert np.isfinite(predicted.mean).all()
    assert np.isfinite(predicted.std).all()
    assert np.all(predicted.std > 0)
    assert np.isfinite([low, high]).all()
    assert np.all(low < high)
    assert np.isfinite(predicted.log_prob(np.resize(y, len(predicted)))).all()
    assert np.isfinite(predicted.entropy).all()
    assert np.isfinite(model.sample_y(x, DRAWN["n_predict_draws"])).all()
    reach = 100 * (np.ptp(y) if np.ptp(y) > 1e-9 * np.abs(y).max() else 1.0)  # constant targets have a unit of 1
    assert np.all(np.abs(predicted.mean[here] - y.mean()) < reach)
    assert np.all(predicted.std[here] < reach)


def assert_finite_classes(model, x: np.ndarray, labels: np.ndarray) -> None:
    probabilities = model.fit(x, labels).predict_proba(np.concatenate([x, x + 1, -10 * x]))
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-12)
    assert set(model.predict(x)) <= set(labels)


def each(names, *, fast: str):
    """All estimators; the programs of those that are not named take long to compile."""
    return [pytest.param(name, marks=[] if name == fast else pytest.mark.slow) for name in names]


@pytest.mark.parametrize("name", each(REGRESSORS, fast="local"))
@pytest.mark.parametrize("data", DATA)
def test_regression_on_odd_data_ends_with_finite_predictions(name, data):
    assert_finite_regression(REGRESSORS[name](), *DATA[data])


@pytest.mark.parametrize("name", each(CLASSIFIERS, fast="global"))
@pytest.mark.parametrize("data", [d for d in DATA if not d.startswith(("targets", "constant targets", "one outlier"))])
def test_classification_on_odd_data_ends_with_finite_probabilities_or_names_the_single_class(name, data):
    x, _ = DATA[data]
    labels = LABELS[np.arange(len(x)) % 2]
    if len(x) == 1:
        with pytest.raises(ValueError, match="expected at least two classes; y has one class"):
            CLASSIFIERS[name]().fit(x, labels)
    else:
        assert_finite_classes(CLASSIFIERS[name](), x, labels)


@pytest.mark.parametrize("name", CUBIC)
def test_what_costs_the_cube_says_so_for_five_thousand_features(name):
    with pytest.raises(ValueError, match="expected at most .* every (draw|step) factors"):
        REGRESSORS[name]().fit(WIDE[5000], Y)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "width"), [(n, w) for n in REGRESSORS for w in WIDE if not (n in CUBIC and w > 300)])
def test_one_to_five_thousand_features_end_with_finite_predictions(name, width):
    assert_finite_regression(REGRESSORS[name](), WIDE[width], Y)


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_five_thousand_features_end_with_finite_probabilities(name):
    assert_finite_classes(CLASSIFIERS[name](), WIDE[5000], LABELS[np.arange(ROWS) % 3])
