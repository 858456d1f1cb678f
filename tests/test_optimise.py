"""Bayesian optimisation: its parts against slow twins, a loop that survives being killed."""

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF as ScikitRBF
from sklearn.linear_model import BayesianRidge

from killed import calls_until_killed
from metaprior import MetaGPRegressor
from metaprior.baselines import EnsembleRegressor, ExactGPRegressor, MFVIRegressor
from metaprior.optimise import Box, Optimiser, minimise
from metaprior.optimise.acquisition import Situation, descended, expected_improvement, gaussian_improvement, thompson
from metaprior.optimise.functions import functions_of, improvement, lowest
from metaprior.optimise.targets import surrogate_targets

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")

BOX = Box([(-2.0, 1.0), (10.0, 30.0)])
RNG = np.random.default_rng(0)
X = BOX.spread(12, 0)
Y = (X[:, 0] + 0.5) ** 2 + np.sin(X[:, 1] / 3)
#: Draws of expected improvement in the tests of small networks: one number, so that one program serves all.
FEW_DRAWS = 16


def tiny(**changes):
    """A surrogate that fits in a moment."""
    settings = {"n_inducing": 6, "max_iter": 60, "noise": 0.05, "random_state": 0, "input_kernel": "rbf"}
    return MetaGPRegressor((4,), **{**settings, **changes})


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr("metaprior.optimise.acquisition.NUM_DRAWS", FEW_DRAWS)


@pytest.fixture(scope="module")
def network():
    return tiny().fit(X, surrogate_targets(Y, warp=False))


@pytest.fixture(scope="module")
def gp():
    return ExactGPRegressor("rbf", n_restarts=0, noise=0.05, random_state=0).fit(X, surrogate_targets(Y, warp=False))


def situation(model, waiting=None, seed=0):
    waiting = np.empty((0, 2)) if waiting is None else waiting
    return Situation(BOX, model, X, surrogate_targets(Y, warp=False), waiting, np.random.SeedSequence(seed))


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
        "metaprior.optimise.acquisition.functions_of",
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
    with pytest.raises(TypeError, match="sample_y; BayesianRidge does not"):
        thompson(situation(model), 1)


# --- ask and tell -----------------------------------------------------------------------


def answered(x):
    return float((x[0] + 0.5) ** 2 + np.sin(x[1] / 3))


def played(optimiser, num_calls):
    """The questions of so many rounds of ask and tell."""
    for _ in range(num_calls):
        question = optimiser.ask()
        optimiser.tell(question, answered(question[0]))
    return optimiser.X


def test_asking_again_gives_the_same_questions_and_then_new_ones():
    optimiser = Optimiser(BOX.bounds, acquisition="random")
    first = optimiser.ask(2)
    np.testing.assert_array_equal(optimiser.ask(2), first)
    np.testing.assert_array_equal(optimiser.ask(3)[:2], first)
    optimiser.tell(first[1], 0.3)
    np.testing.assert_array_equal(optimiser.ask(1), first[:1])
    assert len(optimiser.waiting) == 2
    np.testing.assert_array_equal(optimiser.X, first[1:])


def test_first_questions_are_the_spread_and_told_points_count_for_it():
    optimiser = Optimiser(BOX.bounds, num_initial=4, acquisition="random", random_state=5)
    np.testing.assert_array_equal(optimiser.ask(2), BOX.spread(2, 5))
    optimiser.tell([[0.0, 20.0], [1.0, 25.0]], [1.0, 2.0])  # unasked
    np.testing.assert_array_equal(optimiser.ask(2), BOX.spread(2, 5))
    optimiser.tell(optimiser.ask(2), [0.1, 0.2])
    assert not np.any(np.all(optimiser.ask(1) == BOX.spread(8, 5), axis=1))


def test_best_and_history_are_those_of_the_answers():
    pandas = pytest.importorskip("pandas")
    optimiser = Optimiser(BOX.bounds, acquisition="random")
    optimiser.tell([[0.0, 20.0], [1.0, 25.0], [-1.0, 11.0]], [1.0, -2.0, 0.5])
    np.testing.assert_array_equal(optimiser.best_x, [1.0, 25.0])
    assert optimiser.best_y == -2.0
    expected = {"x0": [0.0, 1.0, -1.0], "x1": [20.0, 25.0, 11.0], "y": [1.0, -2.0, 0.5], "best": [1.0, -2.0, -2.0]}
    pandas.testing.assert_frame_equal(optimiser.history(), pandas.DataFrame(expected))


def test_the_seed_decides_all_questions():
    runs = [played(Optimiser(BOX.bounds, surrogate=tiny(), num_initial=4, random_state=s), 6) for s in (3, 3, 4)]
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.any(runs[0] == runs[2])


@pytest.mark.parametrize("acquisition", ["thompson", "ei"])
def test_a_loop_that_is_loaded_between_any_two_calls_asks_the_same(acquisition, tmp_path, few_draws):
    settings = {"surrogate": tiny(), "num_initial": 4, "warm_iter": 20, "acquisition": acquisition, "random_state": 1}
    expected = played(Optimiser(BOX.bounds, **settings), 9)  # fresh at 4 and 8 answers, going on at 5, 6, 7
    path = tmp_path / "loop.metaprior"
    Optimiser(BOX.bounds, **settings, path=path)
    for _ in range(9):
        Optimiser.load(path).ask()
        loaded = Optimiser.load(path)
        question = loaded.ask()
        np.testing.assert_array_equal(loaded.waiting, question)
        loaded.tell(question, answered(question[0]))
    np.testing.assert_array_equal(Optimiser.load(path).X, expected)


def test_growing_data_compile_nothing_anew():
    compiled = []

    def heard(event, duration, **_):
        if event.endswith("backend_compile_duration"):
            compiled.append(event)

    optimiser = Optimiser(BOX.bounds, surrogate=tiny(), num_initial=4)
    played(optimiser, 6)
    jax.monitoring.register_event_duration_secs_listener(heard)
    try:
        played(optimiser, 6)  # up to 11 rows, padded to 16: fits of both kinds, candidates, gradients
        assert compiled == []
        jax.jit(lambda x: x + 1)(1.0)
        assert compiled  # a program would have been heard
    finally:
        jax.monitoring.unregister_event_duration_listener(heard)


def test_a_loop_with_a_foreign_surrogate_goes_on_when_it_is_given_again(tmp_path):
    def make():
        return GaussianProcessRegressor(ScikitRBF([1.0, 5.0]), alpha=1e-4, optimizer=None)

    settings = {"num_initial": 4, "acquisition": "ei"}
    expected = played(Optimiser(BOX.bounds, surrogate=make(), **settings), 7)
    path = tmp_path / "loop"
    played(Optimiser(BOX.bounds, surrogate=make(), **settings, path=path), 5)
    with pytest.raises(ValueError, match="not of metaprior.*give it again"):
        Optimiser.load(path)
    np.testing.assert_array_equal(played(Optimiser.load(path, make()), 2), expected)


def test_minimise_goes_on_from_its_file(tmp_path):
    path, calls = tmp_path / "loop", []

    def counted(x):
        calls.append(x)
        return answered(x)

    settings = {"acquisition": "random", "random_state": 2}
    whole = minimise(answered, BOX.bounds, 9, batch=2, **settings)
    minimise(counted, BOX.bounds, 4, batch=2, path=path, **settings)
    found = minimise(counted, BOX.bounds, 9, batch=2, path=path, **settings)
    assert len(calls) == len(found.y) == 9
    np.testing.assert_array_equal(found.X, whole.X)
    with pytest.raises(ValueError, match="random_state: the loop in .* has 2, not 3"):
        minimise(counted, BOX.bounds, 12, path=path, acquisition="random", random_state=3)


def test_verbose_draws_on_stderr_only(capsys):
    minimise(answered, BOX.bounds, 3, acquisition="random", verbose=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "best" in err


def test_an_existing_file_is_not_replaced(tmp_path):
    path = tmp_path / "loop"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="load it to go on"):
        Optimiser(BOX.bounds, path=path)
    assert path.read_text() == "mine"


def test_a_file_of_something_else_is_refused(tmp_path, network):
    network.save(tmp_path / "model")
    with pytest.raises(ValueError, match="expected the file of a loop of 'optimise'.*'MetaGPRegressor'"):
        Optimiser.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"acquisition": "luck"}, r"acquisition: expected one of \('thompson', 'ei', 'random'\); got 'luck'"),
        ({"num_initial": 1}, "num_initial: expected a whole number of at least 2"),
        ({"random_state": None}, "random_state: expected a whole number"),
    ],
)
def test_settings_that_are_none_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Optimiser(BOX.bounds, **changes)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([0.0], 1.0, "expected rows of 2 numbers"),
        ([0.0, 31.0], 1.0, "expected points in the box"),
        ([0.0, 20.0], np.nan, "expected finite answers.*tell a poor value"),
        ([0.0, 20.0], [1.0, 2.0], "expected 1 answers"),
    ],
)
def test_answers_that_are_none_are_refused(X, y, message):
    optimiser = Optimiser(BOX.bounds)
    with pytest.raises(ValueError, match=message):
        optimiser.tell(X, y)
    assert len(optimiser.y) == 0


def test_nothing_told_has_no_best():
    with pytest.raises(ValueError, match="nothing was told yet"):
        _ = Optimiser(BOX.bounds).best_x


# --- killed -------------------------------------------------------------------------

LOOP = """
import numpy as np
from metaprior import MetaGPRegressor
from metaprior.optimise import Optimiser
path, bounds = sys.argv[1], [(-2.0, 1.0), (10.0, 30.0)]
surrogate = MetaGPRegressor((4,), input_kernel="rbf", n_inducing=6, max_iter=60, noise=0.05)
try:
    loop = Optimiser(bounds, surrogate=surrogate, num_initial=3, warm_iter=20, path=path)
except FileExistsError:
    loop = Optimiser.load(path)
while len(loop.y) < 6:
    question = loop.ask()
    done("asked " + " ".join(value.hex() for value in question[0].tolist()))
    loop.tell(question, float((question[0, 0] + 0.5) ** 2 + np.sin(question[0, 1] / 3)))
    done("told")
"""


@pytest.mark.slow
def test_a_loop_killed_between_any_two_calls_goes_on_with_the_same_question(tmp_path):
    whole = calls_until_killed(LOOP, tmp_path / "whole", 12)
    expected = [line for line in whole if line.startswith("asked")]
    assert len(expected) == 6
    for first in (1, 2, 7, 8, 9, 10):  # after asks and tells, of the design and of the surrogate
        path = tmp_path / f"killed after {first}"
        before = calls_until_killed(LOOP, path, first)
        after = calls_until_killed(LOOP, path, 12 - first + (first % 2))  # a question without an answer is asked again
        asked = [line for line in before if line.startswith("asked")]
        asked = asked[:-1] if first % 2 else asked
        assert asked + [line for line in after if line.startswith("asked")] == expected
