"""Gaussian answers in closed form, against integrals of their definitions and draws."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from metaprior.predictive.gaussian import GaussianFunctions, GaussianPredictive


class Known(GaussianFunctions):
    """Independent functions of known moments."""

    def __init__(self, mean, variance):
        self.mean, self.variance, self.num_rows = mean, variance, len(mean)

    def moments(self):
        return self.mean, self.variance

    def covariance(self):
        return np.stack([np.diag(own) for own in self.variance.T])

    def at_rows(self, rows):
        return Known(self.mean[rows], self.variance[rows])

    def draws(self, num_draws, seed):
        normals = np.random.default_rng(seed).standard_normal((num_draws, *self.mean.shape))
        return self.mean + np.sqrt(self.variance) * normals


MEAN, VARIANCE, NOISE = np.array([[0.5], [-1.0], [2.0]]), np.array([[0.3], [0.0], [2.0]]), np.array([0.6])
OFFSET, SCALE = np.array([10.0]), np.array([4.0])
TARGETS = np.array([11.0, 3.0, 30.0])


@pytest.fixture
def known():
    return GaussianPredictive(Known(MEAN, VARIANCE), NOISE, OFFSET, SCALE, flat=True, seed=0)


def densities():
    """Return the distribution of y at every row, from the definition."""
    spread = SCALE * np.sqrt(VARIANCE + NOISE**2)
    return [norm(m, s) for m, s in zip((OFFSET + SCALE * MEAN)[:, 0], spread[:, 0], strict=True)]


def integral(function, normal):
    return quad(function, *(normal.mean() + 12 * normal.std() * np.array([-1, 1])), limit=200, epsabs=1e-12)[0]


def test_moments_in_closed_form(known):
    for row, normal in enumerate(densities()):
        mean = integral(lambda y, d=normal: y * d.pdf(y), normal)
        np.testing.assert_allclose(known.mean[row], mean, rtol=1e-8)
        variance = integral(lambda y, d=normal, m=mean: (y - m) ** 2 * d.pdf(y), normal)
        np.testing.assert_allclose(known.variance[row], variance, rtol=1e-8)
    np.testing.assert_allclose(known.epistemic_variance, 16 * VARIANCE[:, 0])
    np.testing.assert_allclose(known.aleatoric_variance, 16 * 0.36)
    np.testing.assert_allclose(known.std**2, known.epistemic_variance + known.aleatoric_variance)


def test_entropy_and_mutual_information_equal_integrals(known):
    for row, normal in enumerate(densities()):
        entropy = -integral(lambda y, d=normal: d.pdf(y) * d.logpdf(y), normal)
        np.testing.assert_allclose(known.entropy[row], entropy, rtol=1e-8)
        of_noise = norm(0, 4 * 0.6).entropy()
        np.testing.assert_allclose(known.mutual_information[row], entropy - of_noise, atol=1e-8)


def test_cdf_quantile_and_interval_invert_each_other(known):
    for row, normal in enumerate(densities()):
        np.testing.assert_allclose(known.cdf(TARGETS)[row], normal.cdf(TARGETS[row]), rtol=1e-10)
    for level in (0.05, 0.5, 0.9):
        np.testing.assert_allclose(known.cdf(known.quantile(level)), level, rtol=1e-10)
    assert known.quantile(np.array([0.1, 0.5, 0.9])).shape == (3, 3)
    low, high = known.interval(0.8)
    np.testing.assert_allclose(known.cdf(high) - known.cdf(low), 0.8, rtol=1e-10)


def test_crps_equals_the_integral_of_its_definition(known):
    for row, normal in enumerate(densities()):
        y = TARGETS[row]
        low, high = normal.mean() - 12 * normal.std(), normal.mean() + 12 * normal.std()
        below = quad(lambda t, d=normal: d.cdf(t) ** 2, low, y, limit=200)[0]
        above = quad(lambda t, d=normal: d.sf(t) ** 2, y, high, limit=200)[0]
        np.testing.assert_allclose(known.crps(TARGETS)[row], below + above, rtol=1e-7)


def test_log_prob_is_the_log_density_summed_over_outputs(known):
    each = [normal.logpdf(y) for normal, y in zip(densities(), TARGETS, strict=True)]
    np.testing.assert_allclose(known.log_prob(TARGETS), each, rtol=1e-10)
    twice = GaussianPredictive(
        Known(np.tile(MEAN, 2), np.tile(VARIANCE, 2)), np.tile(NOISE, 2), np.tile(OFFSET, 2), np.tile(SCALE, 2),
        flat=False, seed=0,
    )  # fmt: skip
    both = np.column_stack([TARGETS, TARGETS])
    np.testing.assert_allclose(twice.log_prob(both), 2 * np.array(each), rtol=1e-10)
    np.testing.assert_allclose(twice.entropy, 2 * known.entropy, rtol=1e-10)
    np.testing.assert_allclose(twice.mutual_information, 2 * known.mutual_information, atol=1e-12)
    assert twice.cdf(both).shape == twice.crps(both).shape == (3, 2)
    assert twice.quantile(0.3).shape == twice.mean.shape == (3, 2)
    assert twice.sample(0).shape == twice.draws().shape == (twice.num_draws, 3, 2)


def test_draws_and_samples_have_the_moments(known):
    draws, samples = known.draws(), known.sample(1)
    error = 5 / np.sqrt(known.num_draws)
    assert len(known) == 3
    assert draws.shape == samples.shape == (known.num_draws, 3)
    assert (abs(draws.mean(0) - known.mean) <= error * np.sqrt(known.epistemic_variance) + 1e-9).all()
    assert (abs(samples.mean(0) - known.mean) <= error * known.std).all()
    assert (abs(samples.var(0) / known.variance - 1) <= error * np.sqrt(2)).all()
    assert np.array_equal(known.sample(1), samples)
    assert not known.is_classification
