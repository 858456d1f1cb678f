"""The shape of the estimators: short chains of classes, documented parameters, and fits that end well or not at all."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from metaprior import MetaGPClassifier, MetaGPRegressor, baselines
from metaprior.estimators import method
from metaprior.estimators.documented import documented_like, entries
from metaprior.estimators.fit import method_of
from metaprior.multitask import MultiTaskClassifier, MultiTaskRegressor

BASELINES = [getattr(baselines, name) for name in baselines.__all__]
ESTIMATORS = [MetaGPRegressor, MetaGPClassifier, *BASELINES]
ALL = [*ESTIMATORS, MultiTaskRegressor, MultiTaskClassifier]
X = np.linspace(-1, 1, 20)[:, None]
Y = np.sin(3 * X[:, 0])


def own_classes(cls):
    return [base for base in cls.__mro__ if base.__module__.startswith("metaprior.")]


@pytest.mark.parametrize("cls", ALL)
def test_an_estimator_has_at_most_three_classes_of_the_library(cls):
    assert len(own_classes(cls)) <= 3


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_method_has_at_most_three_classes_of_the_library(cls):
    assert len(own_classes(type(method_of(cls())))) <= 3


@pytest.mark.parametrize("cls", ALL)
def test_every_parameter_stands_in_the_class_itself_and_is_described(cls):
    parameters = list(inspect.signature(cls).parameters)
    assert set(parameters) == set(cls().get_params(deep=False))
    assert set(parameters) <= set(cls.__annotations__)
    described = entries(cls.__doc__)
    assert [name for name in parameters if name not in described] == []
    assert [name for name in parameters if len(described[name].splitlines()) == 1] == []


def test_a_parameter_that_nobody_describes_is_an_error():
    class Undescribed(BaseEstimator):
        """An estimator."""

        def __init__(self, depth=1):
            self.depth = depth

    with pytest.raises(TypeError, match="Undescribed: expected every parameter to be described; .'depth'. are not"):
        documented_like(MetaGPRegressor)(Undescribed)


@pytest.mark.parametrize("cls", [MetaGPRegressor, baselines.EnsembleRegressor])
def test_a_fit_that_is_interrupted_leaves_the_last_one(cls, monkeypatch):
    model = cls((3,), max_iter=20, random_state=0).fit(X, Y)
    before, mean = dict(vars(model)), model.predict(X)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(method, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(np.column_stack([X, X]), 100 + 5 * Y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    np.testing.assert_array_equal(model.predict(X), mean)


def test_data_that_are_refused_leave_the_last_fit():
    model = MetaGPClassifier((3,), max_iter=20, random_state=0, input_kernel=None).fit(X, Y > 0)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="expected at least two classes"):
        model.fit(np.column_stack([X, X]), np.ones(20))
    assert vars(model) == before
