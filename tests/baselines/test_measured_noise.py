"""Where the noise of mean-field networks starts: the measure against a slow twin, and what is made of it."""

import numpy as np
import pytest

from metaprior.baselines import MetaNNRegressor, MFVIRegressor, measured_noise
from metaprior.baselines.measured_noise import PART
from metaprior.estimators.method import START_NOISE
from prepared import problem_of

RNG = np.random.default_rng(0)


def by_all_pairs(x, targets):
    """The same by every distance, one row at a time."""
    unit = (x - x.mean(0)) / x.std(0)
    squares = []
    for row in range(len(x)):
        distance = np.sum((unit - unit[row]) ** 2, axis=1)
        distance[row] = np.inf
        squares.append((targets[row] - targets[np.argmin(distance)]) ** 2)
    return np.sqrt(np.mean(squares, axis=0) / 2)


@pytest.mark.parametrize("num_features", [1, 3, 20])
def test_it_is_what_nearest_rows_differ_by(num_features):
    x = RNG.standard_normal((60, num_features)) * np.geomspace(1e-3, 1e3, num_features)
    targets = RNG.standard_normal((60, 2)) * [1.0, 5.0] + x[:, :1] / x[:, 0].std()
    np.testing.assert_allclose(measured_noise.measured_noise(x, targets), by_all_pairs(x, targets), rtol=1e-12)


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_of_many_rows_of_a_smooth_function_it_is_the_noise(noise):
    x = RNG.uniform(-1, 1, (4000, 1))
    targets = np.sin(4 * x) + noise * RNG.standard_normal(x.shape)
    measured = measured_noise.measured_noise(x, targets)[0]
    error = 1 / np.sqrt(measured_noise.MOST_ROWS)  # at most: rows may be each other's neighbours
    assert abs(measured / noise - 1) < 4 * error


def test_equal_rows_are_neighbours_of_each_other_and_not_of_themselves():
    x, targets = np.zeros((6, 1)), np.array([[1.0], [-1.0]] * 3)
    x[3:] = 1
    assert measured_noise.measured_noise(x, targets)[0] > 0.5


@pytest.mark.parametrize("cls", [MFVIRegressor, MetaNNRegressor])
def test_the_noise_starts_at_a_part_of_it_and_not_below_the_usual_start(cls):
    x = RNG.uniform(-1, 1, (80, 1))
    for targets in (np.sin(3 * x[:, 0]), RNG.standard_normal(80)):
        problem = problem_of(cls(), x, targets)
        start = np.exp(problem.likelihood.log_noise)
        np.testing.assert_allclose(start, np.maximum(START_NOISE, PART * by_all_pairs(x, problem.targets)))
    assert start[0] > 3 * START_NOISE
    np.testing.assert_allclose(np.exp(problem_of(cls(), x[:1], [2.0]).likelihood.log_noise), START_NOISE)
    np.testing.assert_allclose(np.exp(problem_of(cls(noise=0.2), x, targets).likelihood.log_noise), 0.2 / targets.std())
