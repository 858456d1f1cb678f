"""The coverage of conformal prediction is what is promised: at least the level, and Beta given the calibration."""

import numpy as np
import pytest
from scipy.stats import beta, binom, kstest, norm

from conformal.stubs import Line, Slope, Softmax, class_rows, noisy_rows
from metaprior import MetaGPRegressor
from metaprior.conformal import ConformalClassifier, ConformalRegressor, CrossConformalRegressor
from metaprior.conformal.ranks import conformal_rank, coverage_interval, fewest_rows

NUM_REPLICATES = 2000
#: A test that is right fails once in a hundred thousand times.
SIGNIFICANCE = 1e-5


def at_least(hits, total, level):
    """Whether so many hits are not too few for a probability of `level`."""
    return binom(total, level).cdf(hits) > SIGNIFICANCE


def interval_coverage(model, low, high, x):
    """The probability that y ~ N(x, (0.5 + x)^2) lies in the interval."""
    x = np.asarray(x)[:, 0]
    return np.mean(norm.cdf((high - x) / (0.5 + x)) - norm.cdf((low - x) / (0.5 + x)))


@pytest.mark.parametrize("score", ["quantile", "normalised", "absolute"])
def test_the_coverage_of_intervals_given_the_calibration_is_beta(score):
    rng, n, level = np.random.default_rng(1), 29, 0.8
    grid = (np.arange(400) + 0.5)[:, None] / 200  # x is uniform: a mean over the grid is the coverage, within 1e-5
    coverages = []
    for _ in range(NUM_REPLICATES):
        model = ConformalRegressor(Line(0.7).fit(None, None), level=level, conformity_score=score)
        low, high = model.calibrate(*noisy_rows(rng, n)).predict_interval(grid)
        coverages.append(interval_coverage(model, low, high, grid))
    exact = beta(conformal_rank(n, level), n + 1 - conformal_rank(n, level))
    assert kstest(coverages, exact.cdf).pvalue > SIGNIFICANCE
    assert np.mean(coverages) > level - 5 * exact.std() / np.sqrt(NUM_REPLICATES)


@pytest.mark.parametrize("score", ["aps", "raps", "lac"])
@pytest.mark.parametrize("sharpness", [0.4, 3.0])
def test_sets_contain_the_class_with_exactly_the_probability_of_the_rank(score, sharpness):
    rng, n, level = np.random.default_rng(2), 24, 0.85
    hits = 0
    for _ in range(NUM_REPLICATES):
        X, y = class_rows(rng, n + 1)
        model = ConformalClassifier(
            Softmax(sharpness).fit(X, y),
            level=level,
            conformity_score=score,
            allow_empty=True,
            free_rank=1,
            random_state=rng_int(rng),
        )
        hits += model.calibrate(X[:n], y[:n]).predict_set(X[n:])[0, y[n]]
    exact = conformal_rank(n, level) / (n + 1)
    assert exact >= level
    assert SIGNIFICANCE < binom(NUM_REPLICATES, exact).cdf(hits) < 1 - SIGNIFICANCE


def rng_int(rng):
    return int(rng.integers(2**31 - 1))


def test_the_most_probable_class_in_every_set_only_adds_to_the_coverage():
    rng = np.random.default_rng(3)
    X, y = class_rows(rng, 300)
    settings = {"level": 0.5, "conformity_score": "lac", "random_state": 0}
    empty = ConformalClassifier(Softmax(3.0).fit(X, y), allow_empty=True, **settings).calibrate(X, y).predict_set(X)
    full = ConformalClassifier(Softmax(3.0).fit(X, y), **settings).calibrate(X, y).predict_set(X)
    assert not np.all(empty.any(axis=1))
    assert np.all(full.any(axis=1))
    assert np.all(full >= empty)
    assert np.all(full.sum(axis=1) == np.maximum(empty.sum(axis=1), 1))


@pytest.mark.parametrize("score", ["normalised", "absolute"])
@pytest.mark.parametrize("cv", [3, 12])
def test_cross_conformal_intervals_cover_at_the_level(score, cv):
    rng, n, level = np.random.default_rng(4), 12, 0.75
    hits = 0
    for _ in range(NUM_REPLICATES // 4):
        X, y = noisy_rows(rng, n + 1)
        model = CrossConformalRegressor(Slope(), level=level, conformity_score=score, cv=cv, random_state=0).fit(
            X[:n], y[:n]
        )
        low, high = model.predict_interval(X[n:])
        hits += low[0] <= y[n] <= high[0]
    assert at_least(hits, NUM_REPLICATES // 4, level)


def test_the_rank_is_exact_for_levels_that_are_no_binary_fractions():
    # 0.07 * 100 is 7.000000000000001 in binary
    assert conformal_rank(99, 0.07) == 7
    assert conformal_rank(9, 0.9) == 9
    assert conformal_rank(8, 0.9) == 9
    for level in (0.5, 0.8, 0.9, 0.95, 0.99):
        least = fewest_rows(level)
        assert conformal_rank(least, level) <= least
        assert conformal_rank(least - 1, level) > least - 1


def test_the_coverage_interval_is_that_of_the_beta_distribution():
    low, high = coverage_interval(1000, 0.9, 0.9)
    assert 0.883 < low < 0.886
    assert 0.914 < high < 0.917
    assert coverage_interval(8, 0.9, 0.9) == (1.0, 1.0)


@pytest.mark.slow
def test_intervals_of_our_own_model_cover_where_the_model_itself_does_not():
    """Noise of two widths under a model with one: its intervals are wrong, the conformal ones cover."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, 1400)[:, None]
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.standard_t(2, 1400)
    model = ConformalRegressor(
        MetaGPRegressor((20,), input_kernel=None, max_iter=400, noise=0.05, random_state=0),
        calibration_size=300,
        random_state=0,
    ).fit(x[:600], y[:600])
    low, high = model.predict_interval(x[600:])
    own_low, own_high = model.estimator_.predict_distribution(x[600:]).interval(0.9)
    covered = np.mean((low <= y[600:]) & (y[600:] <= high))
    own = np.mean((own_low <= y[600:]) & (y[600:] <= own_high))
    # 800 new rows after 300 of calibration: Beta, and binomial given the coverage
    spread = np.sqrt(0.9 * 0.1 * (1 / 800 + 1 / 302))
    assert abs(covered - 0.9) < 5 * spread
    assert own < 0.9 - 5 * spread
