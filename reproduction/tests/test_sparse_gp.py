"""The sparse GP of the reproduction: with an inducing point at every row it is the exact GP."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from metaprior.compilation import in_float64
from metaprior_reproduction.parts.sparse_gp import JITTER, Parameters, SparseGPRegressor, bound

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (60, 2))
Y = 3 + np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * RNG.standard_normal(60)
NEW = RNG.uniform(-2.5, 2.5, (15, 2))


def rbf(own, a, b):
    gaps = (a[:, None] - b[None]) / np.exp(own.log_lengthscale)
    return np.exp(own.log_variance) * np.exp(-0.5 * np.sum(gaps**2, axis=2))


def parameters(points):
    return Parameters(np.array([-0.3, 0.4]), np.asarray(0.2), np.asarray(-1.5), points)


def test_with_every_row_the_bound_is_the_evidence_of_the_exact_gp():
    own = parameters(X)
    y = Y - 3
    dense = rbf(own, X, X) + np.exp(2 * own.log_noise) * np.eye(len(y))
    expected = multivariate_normal(np.zeros(len(y)), dense).logpdf(y)
    with in_float64():
        found = float(bound(own, jnp.asarray(X), jnp.asarray(y)))
    # the jitter on K_mm leaves at most a variance of JITTER at every row unexplained
    slack = len(y) * JITTER * np.exp(own.log_variance - 2 * own.log_noise)
    assert expected - 2 * slack <= found <= expected + slack


def test_fewer_points_give_a_lower_bound():
    with in_float64():
        whole, part = (float(bound(parameters(points), jnp.asarray(X), jnp.asarray(Y - 3))) for points in (X, X[:12]))
    assert part < whole


def test_with_every_row_predictions_are_those_of_the_exact_gp():
    model = SparseGPRegressor(n_inducing=60, max_iter=30).fit(X, Y)
    own, x, new = model.parameters_, (X - X.mean(0)) / X.std(0), (NEW - X.mean(0)) / X.std(0)
    noise, y = np.exp(own.log_noise), (Y - Y.mean()) / Y.std()
    # the inducing points have moved, but there are as many as rows: the data are explained all the same
    solve = np.linalg.inv(rbf(own, x, x) + noise**2 * np.eye(len(y)))
    cross = rbf(own, new, x)
    mean, within = cross @ solve @ y, rbf(own, new, new) - cross @ solve @ cross.T
    predicted = model.predict_distribution(NEW)
    tolerance = 0.02 * Y.std()
    np.testing.assert_allclose(predicted.mean, Y.mean() + Y.std() * mean, atol=tolerance)
    np.testing.assert_allclose(predicted.covariance() / Y.var(), within, atol=0.02)
    y_new = predicted.mean + 0.1
    joint = multivariate_normal(predicted.mean, predicted.covariance(noise=True)).logpdf(y_new)
    assert predicted.joint_log_prob(y_new) == pytest.approx(joint, abs=1e-6)
    part, block = predicted[2:5], predicted.covariance(noise=True)[2:5, 2:5]
    joint = multivariate_normal(predicted.mean[2:5], block).logpdf(y_new[2:5])
    assert part.joint_log_prob(y_new[2:5]) == pytest.approx(joint, abs=1e-6)


def test_the_noise_is_found_and_few_points_are_enough_for_a_smooth_function():
    few = SparseGPRegressor(n_inducing=20, max_iter=60).fit(X, Y)
    assert few.noise_ == pytest.approx(0.1, rel=0.35)
    truth = 3 + np.sin(2 * NEW[:, 0]) + 0.5 * NEW[:, 1]
    assert np.sqrt(np.mean((few.predict(NEW) - truth) ** 2)) < 0.25


def test_a_constant_column_and_a_part_of_the_rows_do_no_harm():
    wide = np.column_stack([X, np.full(60, 7.0)])
    model = SparseGPRegressor(n_inducing=20, max_iter=20, most_rows=40).fit(wide, Y)
    assert np.isfinite(model.predict(wide)).all()
    assert np.sqrt(np.mean((model.predict(wide) - Y) ** 2)) < 0.5 * Y.std()


def test_draws_have_the_moments_of_the_posterior():
    model = SparseGPRegressor(n_inducing=20, max_iter=20).fit(X, Y)
    predicted = model.predict_distribution(NEW)
    draws = predicted.function_draws(4000, 1)
    error = np.sqrt(predicted.epistemic_variance / 4000)
    assert np.all(np.abs(draws.mean(0) - predicted.mean) < 5 * error)
