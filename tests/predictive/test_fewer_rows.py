"""The posterior of a local output layer through fewer rows: those that say most, and as good as all of them."""

import numpy as np
import pytest

from metaprior import MetaGPRegressor
from metaprior.chosen_rows import least_known, size_above
from metaprior.kernels import RBF
from metaprior.predictive import fewer_rows, integrated

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (200, 2))
Y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * RNG.standard_normal(200)
TWO = np.column_stack([Y, np.cos(3 * X[:, 0]) + 0.2 * RNG.standard_normal(200)])
X_NEW = RNG.uniform(-1.5, 1.5, (300, 2))


def _posterior_variances(covariance: np.ndarray, rows: np.ndarray) -> np.ndarray:
    own = covariance[np.ix_(rows, rows)]
    return np.diag(covariance - covariance[:, rows] @ np.linalg.solve(own, covariance[rows]))


def _covariance(lengthscale: float) -> np.ndarray:
    return 100 * np.exp(-0.5 * np.sum((X[:, None] - X) ** 2, axis=-1) / lengthscale**2)


def test_each_row_is_the_least_known_given_those_before_it():
    covariance = _covariance(0.3)
    rows = least_known(covariance, 1e-3, 12)
    for place in range(1, len(rows)):
        variances = _posterior_variances(covariance, rows[:place])
        assert variances[rows[place]] == pytest.approx(variances.max(), rel=1e-6)


@pytest.mark.parametrize("lengthscale", [0.5, 2.0])
def test_no_value_is_more_uncertain_than_the_tolerance_given_the_rows(lengthscale):
    covariance = _covariance(lengthscale)
    rows = least_known(covariance, 1e-3, 150)
    assert len(rows) == size_above(len(rows)) < 150
    assert _posterior_variances(covariance + 1e-9 * np.eye(200), rows).max() <= 1e-3


def test_there_are_no_more_rows_than_allowed_and_known_ones_come_last():
    assert len(least_known(np.eye(20), 1e-3, 7)) == 7
    rows = least_known(np.diag([0.0] * 50 + [1.0] * 3 + [0.0] * 50), 0.0, 60)
    assert sorted(rows[:3]) == [50, 51, 52]
    assert len(set(rows)) == len(rows) == 32


def test_sizes_are_few_and_waste_little():
    sizes = {size_above(number) for number in range(1, 1025)}
    assert len(sizes) < 25
    assert all(number <= size_above(number) <= max(32, 1.25 * number + 1) for number in range(1, 1025))


@pytest.mark.parametrize("regime", ["exact", "inducing_rows"])
@pytest.mark.parametrize("targets", [Y, TWO], ids=["one output", "two"])
def test_predictions_are_as_good_as_those_through_all_rows(monkeypatch, regime, targets):
    rows = {} if regime == "exact" else {"n_inducing_rows": 150}
    model = MetaGPRegressor((5,), input_kernel=RBF(), output_layer=regime, max_iter=150, random_state=0, **rows)
    model.fit(X, targets)
    mean, std = model.predict(X_NEW, return_std=True)
    through = integrated.posterior_of(model.model_, model.draw_key_, 16)[0]
    assert through.one(0).at.phi.shape[0] < 120
    assert through.one(0).explained.shape[0] <= through.one(0).explained.shape[1]

    monkeypatch.setattr(fewer_rows, "LEAST_ROWS", 10**6)
    monkeypatch.setattr(integrated, "through_fewer_directions", lambda posteriors, noise: posteriors)
    integrated._KEPT.clear()
    exact_mean, exact_std = model.predict(X_NEW, return_std=True)
    integrated._KEPT.clear()
    np.testing.assert_array_less(np.abs(mean - exact_mean), 4e-3 * exact_std)
    np.testing.assert_allclose(std, exact_std, rtol=4e-3)
    assert not np.array_equal(mean, exact_mean)
