"""The evidence of compositions against a dense normal density, and its gradient against finite differences."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from metaprior.kernels.composition.bases import Base
from metaprior.kernels.composition.evidence import Evidence, Fitted
from metaprior.kernels.composition.expression import Composition, assembled

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 1)), RNG.standard_normal((12, 2))
COMPOSITION, OWN = assembled(
    [
        (np.log([0.7]), [(Base("rbf", (0,)), np.array([-0.3])), (Base("linear", (0,)), np.zeros(0))]),
        (np.log([0.4]), [(Base("periodic", (0,)), np.array([0.2, -0.1]))]),
    ]
)
THETA = np.concatenate([np.log([0.05, 0.3]), OWN])


def test_log_evidence_is_that_of_the_dense_normal_of_every_target():
    evidence = Evidence(X, Y)
    k, _ = COMPOSITION.evaluated(evidence.rows, OWN)
    slow = multivariate_normal(np.zeros(12), k + 0.3 + 0.05 * np.eye(12)).logpdf(Y.T).sum()
    np.testing.assert_allclose(evidence(COMPOSITION, THETA)[0], slow, rtol=1e-10)


@pytest.mark.parametrize(("composition", "theta"), [(COMPOSITION, THETA), (Composition(()), THETA[:2])])
def test_gradient_is_that_of_finite_differences(composition, theta):
    evidence, step = Evidence(X, Y), 1e-5
    moves = step * np.eye(len(theta))
    ends = [[evidence(composition, theta + sign * move)[0] for sign in (1, -1)] for move in moves]
    slow = [(high - low) / (2 * step) for high, low in ends]
    np.testing.assert_allclose(evidence(composition, theta)[1], slow, rtol=1e-6, atol=1e-7)


def test_climbing_raises_the_evidence_to_where_the_gradient_vanishes_or_a_bound_holds():
    evidence = Evidence(X, Y)
    start = evidence.at(COMPOSITION, THETA)
    end = evidence.climbed(start, 300)
    assert end.log_evidence > start.log_evidence
    gradient = evidence(COMPOSITION, end.theta)[1]
    for move in 1e-3 * np.sign(gradient) * np.eye(len(gradient)):
        own = COMPOSITION.bounds(start.theta[2:])
        inside = np.clip((end.theta + move)[2:], *np.array(own).T)
        there = evidence(COMPOSITION, np.concatenate([(end.theta + move)[:2], inside]))[0]
        assert there < end.log_evidence + 0.02


def test_every_hyper_parameter_costs_half_a_log_of_the_rows():
    nothing = Fitted(Composition(()), THETA[:2], -3.0)
    assert nothing.score(100) == -3.0
    assert Fitted(COMPOSITION, THETA, -3.0).score(100) == pytest.approx(-3.0 - 0.5 * 5 * np.log(100))


def test_means_of_the_components_the_constant_and_the_noise_make_up_the_targets():
    evidence = Evidence(X, Y)
    weights = evidence.weights(Fitted(COMPOSITION, THETA, 0.0))
    k, _ = COMPOSITION.evaluated(evidence.rows, OWN)
    np.testing.assert_allclose(k @ weights + 0.3 * weights.sum(axis=0) + 0.05 * weights, Y, atol=1e-10)
