"""The tail of importance weights against distributions whose tail is known."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import genpareto

from metaprior.diagnosis.pareto import effective_fraction, fit_pareto, log_mean_exp, pareto_k_of


@pytest.mark.parametrize("k", [-0.3, 0.1, 0.5, 0.7, 1.2])
def test_the_shape_and_the_scale_of_generalised_pareto_draws_are_found(k):
    """The standard errors are those of maximum likelihood, (1 + k) / sqrt(n) and sigma sqrt(2 (1 + k) / n)."""
    count, sigma = 4000, 2.5
    fits = [fit_pareto(genpareto.rvs(k, scale=sigma, size=count, random_state=seed)) for seed in range(5)]
    error = 1 / np.sqrt(5 * count)
    assert np.mean([fit.k for fit in fits]) == pytest.approx(k, abs=4 * (1 + k) * error)
    assert np.mean([fit.sigma for fit in fits]) == pytest.approx(sigma, abs=4 * sigma * np.sqrt(2 * (1 + k)) * error)


def test_the_fit_has_nearly_the_likelihood_of_the_best():
    x = genpareto.rvs(0.4, scale=1.0, size=300, random_state=0)
    own, (k, _, sigma) = fit_pareto(x), genpareto.fit(x, floc=0)
    best = genpareto.logpdf(x, k, scale=sigma).sum()
    assert best - 0.5 < genpareto.logpdf(x, own.k, scale=own.sigma).sum() <= best + 1e-2


@pytest.mark.parametrize("k", [0.2, 0.7, 1.5])
def test_k_hat_of_weights_with_a_pareto_tail_is_their_exponent(k):
    """P(w > t) = t^(-1/k): log w is k times an exponential. A tail of M = 3 sqrt(S) has an error of (1 + k) / M^.5."""
    num_draws = 40_000
    tail = 3 * np.sqrt(num_draws)
    found = pareto_k_of(k * np.random.default_rng(0).exponential(size=num_draws))
    assert found == pytest.approx((tail * k + 10 * 0.5) / (tail + 10), abs=4 * (1 + k) / np.sqrt(tail))


def test_a_proposal_that_is_too_narrow_has_a_larger_k_hat_than_one_that_is_too_wide():
    """For p = N(0, 1) and q = N(0, s^2), weights are bounded if s > 1, and have the tail 1 - s^2 if s < 1."""
    n = np.random.default_rng(1).standard_normal(20_000)

    def of(s):
        return pareto_k_of(0.5 * n**2 - 0.5 * (s * n) ** 2 + np.log(s))

    assert of(1.5) < 0 < of(0.8) < of(0.5) < of(0.15)
    assert of(0.8) < 0.7 < of(0.15)


def test_a_constant_weight_has_no_tail():
    assert pareto_k_of(np.full(500, 3.0)) == -np.inf


def test_the_scale_of_the_weights_does_not_matter():
    logs = np.random.default_rng(2).exponential(size=1000)
    assert pareto_k_of(logs + 1e4) == pytest.approx(pareto_k_of(logs), abs=1e-8)


def test_too_few_or_infinite_log_weights_are_refused():
    with pytest.raises(ValueError, match="expected at least 25 draws"):
        pareto_k_of(np.zeros(20))
    with pytest.raises(ValueError, match="expected finite numbers; 1 are not"):
        pareto_k_of(np.append(np.zeros(50), np.nan))


def test_the_mean_weight_and_its_worth_in_draws():
    logs = np.log([1.0, 2.0, 3.0]) + 700
    assert log_mean_exp(logs) == pytest.approx(logsumexp(logs) - np.log(3))
    assert effective_fraction(logs) == pytest.approx(36 / (3 * 14))
