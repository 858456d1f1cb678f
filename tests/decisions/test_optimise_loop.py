"""Bayesian optimisation: questions, values, and what is found."""

import jax
import numpy as np
import pytest

from decisions.optimise_problem import BOX, answered, tiny
from metaprior.decisions import Optimiser, minimise

pytestmark = pytest.mark.filterwarnings("ignore:the median distance")

# --- ask and tell -----------------------------------------------------------------------


def played(optimiser, num_calls):
    """The questions of so many rounds of ask and tell."""
    for _ in range(num_calls):
        question = optimiser.ask()
        optimiser.tell(answered(question[0]))
    return optimiser.X


def test_asking_again_gives_the_same_questions_and_then_new_ones():
    optimiser = Optimiser(BOX.bounds, acquisition="random")
    first = optimiser.ask(2)
    np.testing.assert_array_equal(optimiser.ask(2), first)
    np.testing.assert_array_equal(optimiser.ask(3)[:2], first)
    optimiser.tell(0.3, X=first[1])
    np.testing.assert_array_equal(optimiser.ask(1), first[:1])
    assert len(optimiser.pending) == 2
    np.testing.assert_array_equal(optimiser.X, first[1:])


def test_first_questions_are_the_spread_and_told_points_count_for_it():
    optimiser = Optimiser(BOX.bounds, n_initial=4, acquisition="random", random_state=5)
    np.testing.assert_array_equal(optimiser.ask(2), BOX.spread(2, 5))
    optimiser.tell([1.0, 2.0], X=[[0.0, 20.0], [1.0, 25.0]])  # unasked
    np.testing.assert_array_equal(optimiser.ask(2), BOX.spread(2, 5))
    optimiser.ask(2)
    optimiser.tell([0.1, 0.2])
    assert not np.any(np.all(optimiser.ask(1) == BOX.spread(8, 5), axis=1))


def test_best_and_history_are_those_of_the_answers():
    pandas = pytest.importorskip("pandas")
    optimiser = Optimiser(BOX.bounds, acquisition="random")
    optimiser.tell([1.0, -2.0, 0.5], X=[[0.0, 20.0], [1.0, 25.0], [-1.0, 11.0]])
    np.testing.assert_array_equal(optimiser.best_x, [1.0, 25.0])
    assert optimiser.best_y == -2.0
    expected = {
        "observation": [1, 2, 3],
        "x0": [0.0, 1.0, -1.0],
        "x1": [20.0, 25.0, 11.0],
        "y": [1.0, -2.0, 0.5],
        "best": [1.0, -2.0, -2.0],
    }
    pandas.testing.assert_frame_equal(optimiser.history, pandas.DataFrame(expected))


def test_growing_data_compile_nothing_anew():
    compiled = []

    def heard(event, duration, **_):
        if event.endswith("backend_compile_duration"):
            compiled.append(event)

    optimiser = Optimiser(BOX.bounds, estimator=tiny(), n_initial=4)
    played(optimiser, 6)
    jax.monitoring.register_event_duration_secs_listener(heard)
    try:
        played(optimiser, 6)  # up to 11 rows, padded to 16: fits of both kinds, candidates, gradients
        assert compiled == []
        jax.jit(lambda x: x + 1)(1.0)
        assert compiled  # a program would have been heard
    finally:
        jax.monitoring.unregister_event_duration_listener(heard)


def test_minimise_goes_on_from_its_file(tmp_path):
    path, calls = tmp_path / "loop", []

    def counted(x):
        calls.append(x)
        return answered(x)

    settings = {"acquisition": "random", "random_state": 2}
    whole = minimise(answered, BOX.bounds, 9, n_queries=2, **settings)
    minimise(counted, BOX.bounds, 4, n_queries=2, path=path, **settings)
    found = minimise(counted, BOX.bounds, 9, n_queries=2, path=path, **settings)
    assert len(calls) == len(found.y) == 9
    np.testing.assert_array_equal(found.X, whole.X)
    with pytest.raises(ValueError, match="random_state: the loop in .* has 2, not 3"):
        minimise(counted, BOX.bounds, 12, path=path, acquisition="random", random_state=3)


def test_verbose_draws_on_stderr_only(capsys):
    minimise(answered, BOX.bounds, 3, acquisition="random", verbose=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "best" in err


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"acquisition": "luck"}, r"acquisition: expected one of \('thompson', 'ei', 'random'\); got 'luck'"),
        ({"n_initial": 1}, "n_initial: expected a whole number of at least 2"),
        ({"n_queries": 0}, "n_queries: expected a whole number of at least 1; got 0"),
        ({"n_queries": 10_001}, "n_queries: expected at most 10000 points at once; got 10001"),
        ({"warm_iter": 0}, "warm_iter: expected a whole number of at least 1, or None; got 0"),
    ],
)
def test_settings_that_are_none_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Optimiser(BOX.bounds, **changes)


def test_nothing_told_has_no_best():
    with pytest.raises(ValueError, match="there are no values yet"):
        _ = Optimiser(BOX.bounds).best_x
