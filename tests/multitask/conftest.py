"""Estimators of several tasks, each fitted once."""

import pytest

from metaprior.multitask import MultiTaskClassifier, MultiTaskRegressor
from several_tasks import NEW, PLANES, SMALL, WAVES, classes


@pytest.fixture(scope="session")
def waves():
    return MultiTaskRegressor(**SMALL).fit(WAVES).adapt("new", *NEW)


@pytest.fixture(scope="session")
def planes():
    model = MultiTaskClassifier(**{**SMALL, "input_kernel": "rbf"}).fit(PLANES)
    return model.adapt("new", *classes(10, ["mid", "top"], 1.0))
