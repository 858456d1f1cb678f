"""Tables of predictions, labels as the user has them, what a distribution shows of itself, and levels that are none."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from metaprior.baselines import ExactGPRegressor, MAPClassifier, MFVIRegressor
from metaprior.predictive.classes import class_numbers
from metaprior.predictive.from_sklearn import ClassProbabilities

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.standard_normal((12, 2)), columns=["a", "b"], index=[f"row {n}" for n in range(12)])
Y = FRAME.to_numpy() @ np.array([[1.0, -2.0], [0.5, 1.0]]) + 0.1 * RNG.standard_normal((12, 2))
WORDS = np.where(FRAME["a"] > 0, "warm", "cold")


@pytest.fixture(scope="module")
def two():
    return ExactGPRegressor(n_restarts=0, max_iter=3).fit(FRAME, Y)


@pytest.fixture(scope="module")
def one():
    return ExactGPRegressor(n_restarts=0, max_iter=3).fit(FRAME, Y[:, 0])


@pytest.fixture(scope="module")
def classes():
    return MAPClassifier((3,), max_iter=20, random_state=0).fit(FRAME, WORDS)


# --- tables -----------------------------------------------------------------------------------------------------------


def test_a_table_has_the_moments_and_quantiles_by_the_labels_of_the_rows(one):
    predicted = one.predict_distribution(FRAME)
    found = predicted.to_frame(levels=[0.1, 0.5])
    assert list(found.columns) == ["mean", "std", "epistemic_std", "aleatoric_std", "q0.1", "q0.5"]
    assert list(found.index) == list(FRAME.index)
    assert_array_equal(found["mean"], predicted.mean)
    assert_array_equal(found["q0.1"], predicted.quantile(0.1))
    assert_allclose(found["epistemic_std"] ** 2 + found["aleatoric_std"] ** 2, found["std"] ** 2)
    assert list(predicted[3:5].to_frame().index) == ["row 3", "row 4"]
    assert list(predicted.to_frame(index=range(5, 17)).index) == list(range(5, 17))
    assert list(one.predict_distribution(FRAME.to_numpy()).to_frame([]).columns)[-1] == "aleatoric_std"


def test_several_targets_have_columns_of_two_levels(two):
    predicted = two.predict_distribution(FRAME)
    found = predicted.to_frame(targets=["height", "depth"])
    assert_array_equal(found["depth"]["std"], predicted.std[:, 1])
    assert_array_equal(found[("height", "q0.975")], predicted.quantile(0.975)[:, 0])
    assert list(predicted.to_frame().columns.levels[0]) == [0, 1]


def test_classes_have_probabilities_by_label(classes):
    predicted = classes.predict_distribution(FRAME)
    found = predicted.to_frame()
    assert list(found.columns) == ["class", "p_cold", "p_warm", "entropy", "mutual_information"]
    assert_array_equal(found["p_warm"], predicted.probabilities[:, 1])
    assert_array_equal(found["class"], classes.predict(FRAME))


def test_wrong_sizes_of_a_table_are_refused(one, two):
    with pytest.raises(ValueError, match="expected an index of 12 rows; got one of 3"):
        one.predict_distribution(FRAME).to_frame(index=[1, 2, 3])
    with pytest.raises(ValueError, match="expected 2 names of targets"):
        two.predict_distribution(FRAME).to_frame(targets=["height"])
    with pytest.raises(ValueError, match="expected no names of targets, as there is one"):
        one.predict_distribution(FRAME).to_frame(targets=["height"])


# --- labels -----------------------------------------------------------------------------------------------------------


def test_log_prob_takes_labels_and_for_words_their_numbers(classes):
    predicted = classes.predict_distribution(FRAME)
    numbers = (WORDS == "warm").astype(int)
    expected = np.log(predicted.probabilities[np.arange(12), numbers])
    assert_allclose(predicted.log_prob(WORDS), expected, rtol=1e-12)
    assert_array_equal(predicted.log_prob(WORDS.astype(object)[:, None]), predicted.log_prob(numbers))
    assert set(predicted.sample(0).ravel()) <= {"cold", "warm"}
    assert_array_equal(predicted[::2].classes, ["cold", "warm"])
    with pytest.raises(ValueError, match="log_prob: expected labels among 'cold', 'warm', .* got 'hot' at row 0"):
        predicted.log_prob(np.full(12, "hot"))


def test_labels_that_are_numbers_are_never_positions():
    twins = ClassProbabilities(np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([1, 2]))
    assert_allclose(np.exp(twins.log_prob([2, 2])), [0.1, 0.8])
    with pytest.raises(ValueError, match="expected labels among 1, 2, .* got 0 at row 1"):
        twins.log_prob([1, 0])


@pytest.mark.parametrize(
    ("labels", "y", "expected"),
    [
        ([-1, 1], [1, -1, 1], [1, 0, 1]),
        ([0.5, 2.0], [2, 0.5], [1, 0]),
        ([False, True], [1, 0, True], [1, 0, 1]),
        (["a", "b", "c"], ["c", "a"], [2, 0]),
        (["a", "b", "c"], [2, 0.0], [2, 0]),
    ],
)
def test_labels_of_every_kind_are_found(labels, y, expected):
    assert_array_equal(class_numbers(np.array(labels), y, "here"), expected)


@pytest.mark.parametrize("y", [["a", "d"], [0, 3], [0, -1], [0.0, 0.5], [0.0, np.nan]])
def test_labels_that_are_none_are_refused_with_their_row(y):
    with pytest.raises(ValueError, match="here: expected labels among 'a', 'b', 'c', .* at row 1"):
        class_numbers(np.array(["a", "b", "c"]), y, "here")


# --- levels and words -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [95, 0, 1.0, -0.5, np.nan, [0.5, 0.9]])
def test_an_interval_of_95_is_told_what_a_level_is(one, level):
    with pytest.raises(ValueError, match=r"interval: expected a level between 0 and 1, such as 0.95; got"):
        one.predict_distribution(FRAME).interval(level)


def test_a_quantile_of_50_is_told_what_a_level_is(one):
    with pytest.raises(ValueError, match=r"strictly between 0 and 1, such as 0.5; got 50"):
        one.predict_distribution(FRAME).quantile(50)


def test_a_distribution_says_what_it_is_without_computing(one, classes, monkeypatch):
    predicted = one.predict_distribution(FRAME)
    expected = "<GaussianPredictive: regression of 1 target, 12 rows, 128 draws, means not computed yet>"
    assert repr(predicted) == expected
    low, high = predicted.mean.min(), predicted.mean.max()
    assert repr(predicted) == expected.replace("not computed yet", f"from {low:.4g} to {high:.4g}")
    assert "classes 'cold', 'warm', 1 row" in repr(classes.predict_distribution(FRAME)[0])
    drawn = MFVIRegressor((3,), max_iter=2, n_predict_draws=4, random_state=0).fit(FRAME, Y).predict_distribution(FRAME)
    monkeypatch.setattr("metaprior.predictive.draws.NetworkDraws.chunks", None)
    assert repr(drawn) == "<DrawsPredictive: regression of 2 targets, 12 rows, 4 draws, means not computed yet>"


def test_inputs_are_known_in_the_units_of_the_data(one):
    assert_array_equal(one.predict_distribution(FRAME)[2:4].inputs, FRAME.to_numpy()[2:4])
