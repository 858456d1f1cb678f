"""skpro with our distributions: exact mixtures, skpro's own checks, and a forecast of sktime."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("skpro", reason='the bridge to skpro needs pip install ".[skpro]"')

from skpro.metrics import CRPS, LogLoss
from skpro.utils import check_estimator

from bridges.fitted import X, Y
from metaprior import MetaGPRegressor
from metaprior.baselines import ExactGPRegressor
from metaprior.bridges import SkproRegressor

FRAME = pd.DataFrame(X, columns=["a", "b"], index=[f"row {n}" for n in range(24)])
TARGET = pd.DataFrame({"y": Y}, index=FRAME.index)
TWO = pd.DataFrame({"y": Y, "z": 10 - 3 * Y}, index=FRAME.index)
SMALL = {"max_iter": 40, "n_predict_draws": 32, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    return SkproRegressor(MetaGPRegressor((5,), **SMALL)).fit(FRAME, TARGET)


def test_the_mixture_has_the_density_moments_and_quantiles_of_our_distribution(fitted):
    ours, theirs = fitted.estimator_.predict_distribution(X), fitted.predict_proba(FRAME)
    assert type(theirs).__name__ == "Mixture"
    assert len(theirs.distributions) == 4
    np.testing.assert_allclose(theirs.mean().to_numpy()[:, 0], ours.mean, rtol=1e-9)
    np.testing.assert_allclose(theirs.var().to_numpy()[:, 0], ours.variance, rtol=1e-9)
    np.testing.assert_allclose(theirs.log_pdf(TARGET).to_numpy()[:, 0], ours.log_prob(Y), rtol=1e-9)
    np.testing.assert_allclose(theirs.cdf(TARGET).to_numpy()[:, 0], ours.cdf(Y), rtol=1e-9)
    quantiles = fitted.predict_quantiles(FRAME, alpha=[0.05, 0.5])
    at_quantile = theirs.cdf(pd.DataFrame(quantiles[("y", 0.05)].to_numpy(), index=FRAME.index, columns=["y"]))
    np.testing.assert_allclose(at_quantile, 0.05, rtol=1e-7)
    pd.testing.assert_frame_equal(fitted.predict_var(FRAME), theirs.var(), rtol=1e-9)
    interval = fitted.predict_interval(FRAME, coverage=0.9)
    np.testing.assert_allclose(interval.to_numpy().T, ours.interval(0.9), rtol=1e-9)


def test_samples_of_the_mixture_come_from_all_components(fitted):
    theirs, ours = fitted.predict_proba(FRAME), fitted.estimator_.predict_distribution(X)
    np.random.seed(0)  # noqa: NPY002  (skpro draws from it)
    drawn = theirs.sample(2000).to_numpy().reshape(2000, 24)
    assert np.all(np.abs(drawn.mean(axis=0) - ours.mean) < 5 * ours.std / np.sqrt(2000))
    # the variance of a sample variance of a mixture of Gaussians is at most some 3 std^4 / n here
    np.testing.assert_allclose(drawn.var(axis=0), ours.variance, rtol=5 * np.sqrt(3 / 2000))


@pytest.mark.parametrize("estimator", [MetaGPRegressor((4,), **SMALL), ExactGPRegressor()])
def test_several_targets_and_other_estimators_of_the_library_work(estimator):
    model = SkproRegressor(estimator).fit(FRAME, TWO)
    ours, theirs = model.estimator_.predict_distribution(X), model.predict_proba(FRAME)
    np.testing.assert_allclose(theirs.mean(), ours.mean, rtol=1e-9)
    np.testing.assert_allclose(theirs.var(), ours.variance, rtol=1e-9)
    low, high = ours.interval(0.8)
    interval = model.predict_interval(FRAME, coverage=0.8)
    np.testing.assert_allclose(interval.to_numpy(), np.stack([low, high], axis=-1).reshape(24, 4), rtol=1e-9)
    assert list(model.predict(FRAME).columns) == ["y", "z"]


def test_counts_are_an_empirical_distribution_of_draws():
    counts = pd.DataFrame({"n": np.random.default_rng(0).poisson(np.exp(Y))}, index=FRAME.index)
    model = SkproRegressor(MetaGPRegressor((4,), likelihood="poisson", **SMALL)).fit(FRAME, counts)
    theirs = model.predict_proba(FRAME)
    assert type(theirs).__name__ == "Empirical"
    drawn = model.estimator_.predict_distribution(X).sample(0)
    np.testing.assert_allclose(theirs.mean().to_numpy()[:, 0], drawn.mean(axis=0), rtol=1e-9)


def test_metrics_of_skpro_score_it(fitted):
    ours = fitted.estimator_.predict_distribution(X)
    assert LogLoss()(TARGET, fitted.predict_proba(FRAME)) == pytest.approx(-np.mean(ours.log_prob(Y)), rel=1e-6)
    assert np.isfinite(CRPS()(TARGET, fitted.predict_proba(FRAME)))


@pytest.mark.slow
def test_the_checks_of_skpro_pass():
    results = check_estimator(SkproRegressor, raise_exceptions=False, verbose=False)
    failed = {name: result for name, result in results.items() if result != "PASSED"}
    assert failed == {}
    assert len(results) > 50


@pytest.mark.slow
def test_sktime_forecasts_with_it_by_reduction():
    pytest.importorskip("sktime", reason="the forecast needs pip install sktime")
    from sktime.forecasting.compose import DirectTabularRegressionForecaster

    rng = np.random.default_rng(0)
    time = pd.period_range("2015-01", periods=84, freq="M")
    y = pd.Series(np.sin(2 * np.pi * np.arange(84) / 12) + 0.1 * rng.standard_normal(84), index=time)
    regressor = SkproRegressor(MetaGPRegressor((10,), max_iter=150, random_state=0))
    forecaster = DirectTabularRegressionForecaster(regressor, window_length=12)
    forecaster.fit(y[:-6], fh=[1, 2, 3, 4, 5, 6])
    interval = forecaster.predict_interval(coverage=0.95)
    mean = forecaster.predict()
    assert np.sqrt(np.mean((mean.to_numpy().ravel() - y[-6:]) ** 2)) < 0.3  # the standard deviation of y is 0.7
    inside = (interval.iloc[:, 0] <= y[-6:]) & (y[-6:] <= interval.iloc[:, 1])
    assert inside.sum() >= 4  # fewer than four of six at 0.95 is seen once in 400 times
