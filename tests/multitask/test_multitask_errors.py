"""What several tasks cannot be given is told in words."""

import pickle

import numpy as np
import pytest

from metaprior.multitask import MultiTaskRegressor
from several_tasks import NEW, SMALL, TEST, WAVES, classes, wave


@pytest.mark.parametrize("tasks", [{}, [], WAVES["slow"], {"a": WAVES["slow"][0]}, WAVES["slow"][0], None])
def test_what_is_no_set_of_tasks_is_told(tasks):
    with pytest.raises(ValueError, match=r"expected at least one task, as a dict of name to \(X, y\)"):
        MultiTaskRegressor(**SMALL).fit(tasks)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({"a": WAVES["slow"], "b": (np.ones((5, 2)), np.arange(5.0))}, "task 'b': expected 1 features.* got 2"),
        ({"a": WAVES["slow"], "b": (NEW[0], np.ones((12, 2)))}, "task 'b': expected 1 targets.* got 2"),
        ({1.5: WAVES["slow"]}, "expected text or a whole number as the name"),
    ],
)
def test_tasks_that_do_not_go_together_are_told(tasks, message):
    with pytest.raises(ValueError, match=message):
        MultiTaskRegressor(**SMALL).fit(tasks)


def test_a_task_of_the_fit_cannot_be_adapted_and_an_adapted_one_is_learned_anew(waves):
    with pytest.raises(ValueError, match="expected a new name, not one of the fitted tasks .*; got 'slow'"):
        waves.adapt("slow", *NEW)
    again = pickle.loads(pickle.dumps(waves)).adapt("new", *wave(0.8, 12))
    assert list(again.estimators_) == list(waves.estimators_)
    assert not np.array_equal(again.predict(TEST, task="new"), waves.predict(TEST, task="new"))


def test_an_unknown_task_is_told(waves):
    with pytest.raises(ValueError, match=r"expected one of \['slow', 2, 'fast', 'new'\]; got 'slwo'"):
        waves.predict(TEST, task="slwo")


@pytest.mark.slow
def test_unknown_labels_are_told(planes):
    with pytest.raises(ValueError, match=r"task 'x': expected labels of \['low', 'mid', 'top'\]; got \['mid', 'up'\]"):
        planes.adapt("x", *classes(10, ["mid", "up"], 1.0))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"adapt_iter": -1}, "adapt_iter: expected a whole number of at least 0; got -1"),
        ({"warm_start": True}, "warm_start: expected False with several tasks"),
        ({"n_restarts": 2}, "n_restarts: expected 0 with several tasks"),
        ({"output_layer": "drawn"}, "output_layer: expected 'auto' .*fit one MetaGPRegressor per task.*got 'drawn'"),
        ({"weight_gp": "shared"}, "weight_gp: expected 'auto' or 'per_layer' with several tasks.*got 'shared'"),
        ({"conditional": "fitc"}, "conditional: expected 'pathwise' or 'full' with several tasks.*got 'fitc'"),
        ({"uncertain_hypers": True}, "uncertain_hypers: expected 'auto' or False with several tasks"),
        ({"local_layers": (0, 1)}, r"local_layers: expected None or \(-1,\) with several tasks.*got \(0, 1\)"),
    ],
)
def test_parameters_that_make_no_sense_for_several_tasks_are_told(changed, message):
    with pytest.raises(ValueError, match=message):
        MultiTaskRegressor(**{**SMALL, **changed}).fit(WAVES)
