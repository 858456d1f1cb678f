"""Warnings show the line of the user's program, and each kind comes once in a fit."""

import ast
import inspect
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import metaprior
from metaprior import MetaGPRegressor, user_warnings
from metaprior.baselines import ExactGPRegressor, exact_gp
from metaprior.inference import ConvergenceTrouble, steps
from metaprior.user_warnings import one_fit, warn_user

X = np.linspace(-1, 1, 24)[:, None]
Y = np.sin(3 * X[:, 0])


def line_here():
    return inspect.currentframe().f_back.f_lineno


def test_a_warning_of_a_fit_shows_the_line_that_calls_fit(monkeypatch):
    monkeypatch.setattr(exact_gp, "MANY_ROWS", 10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = line_here() + 1
        ExactGPRegressor(n_restarts=0).fit(X, Y)
    (own,) = [found for found in caught if "many for an exact GP" in str(found.message)]
    assert (own.filename, own.lineno) == (__file__, line)


def test_a_warning_of_a_search_shows_the_line_that_starts_the_search(monkeypatch):
    monkeypatch.setattr(exact_gp, "MANY_ROWS", 10)
    search = GridSearchCV(ExactGPRegressor(), {"n_restarts": [0]}, cv=2)
    with pytest.warns(UserWarning, match="many for an exact GP") as caught:
        search.fit(X, Y)
    assert {found.filename for found in caught if "exact GP" in str(found.message)} == {__file__}


def test_a_renamed_parameter_is_shown_where_it_is_used():
    line = line_here() + 2
    with pytest.warns(DeprecationWarning, match="is now called") as caught:
        MetaGPRegressor(mapping="layer")
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_a_fit_that_is_rolled_back_several_times_says_so_once_and_names_the_parameter(monkeypatch):
    step_block, calls = steps.step_block, []

    def bad_block(*args):
        new, records = step_block(*args)
        calls.append(None)
        return new, records | {"kl_z": records["kl_z"] * np.nan} if len(calls) <= 3 else records

    monkeypatch.setattr(steps, "step_block", bad_block)
    model = MetaGPRegressor((2,), max_iter=20, random_state=0)
    for _ in range(2):  # a second fit warns anew
        calls.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, Y)
        (own,) = [found for found in caught if issubclass(found.category, ConvergenceTrouble)]
        assert "lower learning_rate_init" in str(own.message)
        assert own.filename == __file__
        assert model.n_roll_backs_ == 3


def test_kinds_are_counted_apart_and_a_fit_inside_another_belongs_to_it():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with one_fit():
            warn_user("a", once="first")
            with one_fit():
                warn_user("b", once="first")
                warn_user("c", once="second")
            warn_user("d", once="second")
            warn_user("e")
        warn_user("f", once="first")
    assert [str(found.message) for found in caught] == ["a", "c", "e", "f"]


def test_the_library_warns_in_one_way_only():
    package = Path(metaprior.__file__).parent
    calls = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("warnings.warn", "warn")
    }
    assert calls == {"user_warnings.py"}


def test_a_fit_that_is_interrupted_before_its_end_leaves_nothing_that_was_told():
    """As by Ctrl-C between entering the block and its first line: no end of the block is run."""
    user_warnings._TOLD.set(weakref.ref(user_warnings._Told({"kind"})))
    with pytest.warns(UserWarning, match="again"):
        user_warnings.warn_user("again", once="kind")
