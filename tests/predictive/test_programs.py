"""What is compiled for a prediction: one program for few rows and one for many, and nothing again for a like fit."""

from collections.abc import Iterator

import numpy as np
import pytest
from jax import monitoring

from metaprior import MetaGPRegressor

COMPILING = "/jax/core/compile/backend_compile_duration"
X = np.random.default_rng(0).uniform(-1, 1, (60, 2))
Y = np.sin(3 * X[:, 0]) + X[:, 1]
NEW = np.random.default_rng(1).uniform(-1, 1, (5000, 2))


@pytest.fixture
def compiled() -> Iterator[list[str]]:
    """What XLA compiles, or reads from the cache, from now on."""
    seen: list[str] = []
    listening = True

    def listener(name: str, seconds: float, **_: object) -> None:
        if listening and name == COMPILING:
            seen.append(name)

    monitoring.register_event_duration_secs_listener(listener)
    yield seen
    listening = False


def _asked(model: MetaGPRegressor, num_rows: int) -> None:
    said = model.predict_distribution(NEW[:num_rows])
    _ = said.mean, said.std, said.entropy, said.interval(0.9)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_other_numbers_of_rows_and_fits_of_the_same_shape_compile_nothing(compiled, kernel):
    model = MetaGPRegressor((3,), input_kernel=kernel, max_iter=20, random_state=0)
    model.fit(X, Y)
    _asked(model, 5)
    _asked(model, 4500)
    assert compiled
    compiled.clear()
    for num_rows in (1, 2, 100, 256, 257, 700, 4096, 5000):
        _asked(model, num_rows)
    assert compiled == []
    model.set_params(random_state=1).fit(X + 0.1, Y[::-1])
    _asked(model, 50)
    assert compiled == []
