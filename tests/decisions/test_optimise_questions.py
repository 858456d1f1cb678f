"""How the optimiser chooses: the box, its targets, its acquisitions and the way downhill, against slow twins."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as ScikitRBF
from sklearn.linear_model import BayesianRidge

from decisions.optimise_problem import BOX, FEW_DRAWS, tiny
from metaprior.baselines import EnsembleRegressor, ExactGPRegressor, MFVIRegressor
from metaprior.decisions import Box
from metaprior.decisions.optimise.acquisition import (
    Situation,
    descended,
    expected_improvement,
    gaussian_improvement,
    thompson,
)
from metaprior.decisions.optimise.functions import functions_of, improvement, lowest
from metaprior.decisions.optimise.targets import surrogate_targets

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")

RNG = np.random.default_rng(0)
X = BOX.spread(12, 0)
Y = (X[:, 0] + 0.5) ** 2 + np.sin(X[:, 1] / 3)


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr("metaprior.decisions.optimise.acquisition.NUM_DRAWS", FEW_DRAWS)


@pytest.fixture(scope="module")
def network():
    return tiny().fit(X, surrogate_targets(Y, warp=False))


@pytest.fixture(scope="module")
def gp():
    return ExactGPRegressor("rbf", n_restarts=0, noise=0.05, random_state=0).fit(X, surrogate_targets(Y, warp=False))


def situation(model, pending=None, seed=0):
    pending = np.empty((0, 2)) if pending is None else pending
    return Situation(BOX, model, X, surrogate_targets(Y, warp=False), pending, np.random.SeedSequence(seed))


# --- the box ------------------------------------------------------------------------


def test_spread_points_lie_in_the_box_and_fill_it():
    points = BOX.to_unit(BOX.spread(256, 3))
    assert np.all((points >= 0) & (points <= 1))
    counts = np.histogram2d(*points.T, bins=4, range=[(0, 1), (0, 1)])[0]
    assert np.all(counts == 16)  # a scrambled Sobol net puts the same number of points into equal cells


def test_a_spread_goes_on_where_it_stopped():
    np.testing.assert_array_equal(np.vstack([BOX.spread(5, 7), BOX.spread(8, 7, start=5)]), BOX.spread(13, 7))


def test_points_around_are_as_far_as_asked_and_in_the_box():
    middle, radii = BOX.from_unit(np.array([0.5, 0.5])), np.full(2000, 0.01)
    moves = BOX.to_unit(BOX.around(middle, radii, RNG)) - 0.5
    np.testing.assert_allclose(moves.std(axis=0), 0.01, rtol=5 / np.sqrt(2 * 2000))
    corner = BOX.around(BOX.high, np.full(100, 0.5), RNG)
    assert np.all((corner >= BOX.low) & (corner <= BOX.high))


@pytest.mark.parametrize("bounds", [[], [(0, 1, 2)], [(1, 0)], [(0, np.inf)], [(0, 0)], 3.0])
def test_bounds_that_are_none_are_refused(bounds):
    with pytest.raises(ValueError, match=r"bounds: expected a pair \(low, high\)"):
        Box(bounds)


# --- what the surrogate sees ----------------------------------------------------------


@pytest.mark.parametrize("warp", [False, True])
def test_targets_are_standardised_and_keep_their_order(warp):
    y = np.exp(3 * RNG.standard_normal(40))
    targets = surrogate_targets(y, warp=warp)
    np.testing.assert_array_equal(np.argsort(targets), np.argsort(y))
    np.testing.assert_allclose([targets.mean(), targets.std()], [0, 1], atol=1e-12)


def test_the_warp_is_the_logarithm_above_the_best_in_units_of_the_quartile():
    y = np.array([3.0, 4.0, 5.0, 7.0, 103.0])  # y - best: 0, 1, 2, 4, 100; the lower quartile is 1
    expected = np.log([1, 2, 3, 5, 101])
    np.testing.assert_allclose(
        surrogate_targets(y, warp=True), (expected - expected.mean()) / expected.std(), rtol=1e-12
    )


@pytest.mark.parametrize("y", [[2.0], [2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0, 1.0, 9.0]])
def test_answers_that_hardly_differ_give_finite_targets(y):
    assert np.all(np.isfinite(surrogate_targets(np.array(y), warp=True)))


# --- expected improvement ------------------------------------------------------------


@pytest.mark.parametrize(("mean", "std", "known"), [(0.0, 1.0, 0.3), (2.0, 0.5, -0.1), (-1.0, 2.0, 1.0)])
def test_closed_expected_improvement_is_the_integral(mean, std, known):
    integral = quad(lambda f: (known - f) * norm.pdf(f, mean, std), -np.inf, known)[0]
    np.testing.assert_allclose(gaussian_improvement(np.array(mean), np.array(std), known), integral, rtol=1e-6)


def test_improvement_of_draws_is_the_mean_of_what_each_gains():
    f, known = RNG.standard_normal((5, 3)), RNG.standard_normal(5)
    twin = [-np.mean([max(known[s] - f[s, n], 0) for s in range(5)]) for n in range(3)]
    np.testing.assert_allclose(improvement(f, known), twin, rtol=1e-12)


def test_improvement_of_many_gaussian_draws_is_the_closed_form(gp):
    """Against a known value: the mean over draws lies within its standard error of the integral."""
    at, known = BOX.spread(5, 9), 2.0  # so high that every point's draws gain
    f = functions_of(gp, 4000, 1).at(at)
    gains = np.maximum(known - f, 0)
    predicted = gp.predict_distribution(at)
    closed = gaussian_improvement(predicted.mean, np.sqrt(predicted.epistemic_variance), known)
    error = gains.std(axis=0) / np.sqrt(len(f))
    assert np.all(np.abs(gains.mean(axis=0) - closed) < 5 * error)


# --- downhill -------------------------------------------------------------------------


SMALL = {
    "local": tiny(),
    "global": tiny(input_kernel=None),
    "mfvi": MFVIRegressor((4,), max_iter=30, random_state=0),
}


@pytest.mark.parametrize(
    ("name", "criterion", "num_draws"),
    [
        pytest.param("local", lowest, 1, marks=pytest.mark.slow),
        pytest.param("local", improvement, FEW_DRAWS, marks=pytest.mark.slow),
        pytest.param("global", lowest, 1, marks=pytest.mark.slow),
        pytest.param("mfvi", improvement, FEW_DRAWS, marks=pytest.mark.slow),
    ],
)
def test_gradients_of_draws_are_their_differences(name, criterion, num_draws):
    model = SMALL[name].fit(X, Y)
    functions = functions_of(model, num_draws, 5)
    assert functions.smooth
    known = np.full(num_draws, np.median(Y))
    at, step = BOX.spread(4, 4), 1e-5 * (BOX.high - BOX.low)
    values, slopes = functions.slopes(at, criterion, known)
    unit = float(model.y_scale_[0])

    def by_values(X):
        f = functions.at(X) / unit
        return criterion(f, known / unit)

    for d in range(2):
        move = step * np.eye(2)[d]
        differences = (by_values(at + move) - by_values(at - move)) / (2 * step[d])
        np.testing.assert_allclose(slopes[:, d], differences, rtol=1e-4, atol=1e-6)
    offset = 0 if criterion is improvement else float(model.y_offset_[0]) / unit
    np.testing.assert_allclose(values, by_values(at) - offset, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_members_of_an_ensemble_are_followed_downhill_too():
    functions = functions_of(EnsembleRegressor((3,), n_members=2, max_iter=20, random_state=0).fit(X, Y), 1, 0)
    assert functions.smooth
    assert functions.slopes(X[:2], lowest, np.zeros(1))[1].shape == (2, 2)


def test_descent_finds_the_inner_minimum_and_the_bound():
    def bowl(X):  # lowest at (0.3, below the box)
        return (X[:, 0] - 0.3) ** 2 + (X[:, 1] - 5) ** 2, 2 * np.stack([X[:, 0] - 0.3, X[:, 1] - 5], axis=1)

    ends = descended(bowl, BOX.spread(4, 1), BOX)
    np.testing.assert_allclose(ends, np.tile([0.3, 10.0], (4, 1)), atol=1e-4)


class Recorded:
    """Drawn functions, and where they were asked."""

    def __init__(self, functions):
        self.functions, self.rows, self.values, self.smooth = functions, [], [], functions.smooth

    def at(self, X):
        self.rows.append(X)
        self.values.append(self.functions.at(X))
        return self.values[-1]

    def slopes(self, *args):
        return self.functions.slopes(*args)


@pytest.fixture
def recorded(monkeypatch):
    """Everything that is drawn."""
    drawn = []
    monkeypatch.setattr(
        "metaprior.decisions.optimise.acquisition.functions_of",
        lambda *args: drawn.append(Recorded(functions_of(*args))) or drawn[-1],
    )
    return drawn


@pytest.mark.parametrize("seed", range(3))
def test_a_thompson_question_is_the_lowest_point_of_a_draw(network, seed, recorded):
    (question,) = thompson(situation(network, seed=seed), 1)
    (drawn,) = recorded
    dense = BOX.from_unit(np.stack(np.meshgrid(*[np.linspace(0, 1, 60)] * 2), -1).reshape(-1, 2))
    assert drawn.at(question[None])[0, 0] <= drawn.at(dense)[0].min() + 1e-6


@pytest.mark.parametrize("name", ["network", "gp"])
def test_every_question_of_a_batch_gains_most_given_those_before_it(name, request, few_draws, recorded):
    model = request.getfixturevalue(name)
    batch = expected_improvement(situation(model), 3)
    (drawn,) = recorded
    f, rows = drawn.values[0], drawn.rows[0]
    known = f[:, : len(X)].min(axis=1)
    for question in batch:
        gains = [np.mean(np.maximum(known - column, 0)) for column in f.T]
        if drawn.smooth:  # followed downhill from the best candidates
            of_question = drawn.at(question[None])[:, 0]
        else:
            of_question = f[:, np.flatnonzero(np.all(rows == question, axis=1))[0]]
        gain = np.mean(np.maximum(known - of_question, 0))
        assert gain >= max(gains) > 0
        known = np.minimum(known, of_question)


def test_batches_of_thompson_questions_differ(network):
    batch = thompson(situation(network), 4)
    gaps = np.abs(BOX.to_unit(batch)[:, None] - BOX.to_unit(batch)).max(axis=2)
    assert np.all(gaps[~np.eye(4, dtype=bool)] > 1e-4)


def test_expected_improvement_of_a_gp_beats_a_dense_grid(gp):
    (question,) = expected_improvement(situation(gp), 1)
    dense = BOX.from_unit(np.stack(np.meshgrid(*[np.linspace(0, 1, 60)] * 2), -1).reshape(-1, 2))
    known = gp.predict(X).min()

    def gain(at):
        predicted = gp.predict_distribution(at)
        return gaussian_improvement(predicted.mean, np.sqrt(predicted.epistemic_variance), known)

    assert gain(question[None])[0] >= gain(dense).max() - 1e-9


def test_draws_of_a_scikit_learn_gp_serve_both_rules():
    model = GaussianProcessRegressor(ScikitRBF([1.0, 5.0]), alpha=1e-4).fit(X, surrogate_targets(Y, warp=False))
    for rule, count in [(thompson, 2), (expected_improvement, 1), (expected_improvement, 2)]:
        assert np.all(BOX.checked(rule(situation(model), count), "question") >= BOX.low)


def test_a_model_without_draws_is_refused_where_draws_are_needed():
    model = BayesianRidge().fit(X, Y)
    assert expected_improvement(situation(model), 1).shape == (1, 2)
    with pytest.raises(TypeError, match="sample_y; BayesianRidge cannot"):
        thompson(situation(model), 1)
