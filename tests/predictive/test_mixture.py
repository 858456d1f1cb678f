"""A mixture of models: every answer is that of all their draws together."""

import numpy as np
import pytest

from metaprior import MetaGPClassifier, MetaGPRegressor
from metaprior.baselines import ExactGPRegressor
from metaprior.predictive.mixture import mixture_of

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (300, 2))  # more than one chunk of rows
Y = X[:, 0] + 0.3 * RNG.standard_normal(300)
SMALL = {"hidden_layer_sizes": (4,), "n_inducing": 5, "max_iter": 60, "n_predict_draws": 8}


@pytest.fixture(scope="module")
def regressions():
    return [
        MetaGPRegressor(**SMALL, random_state=seed, input_kernel=None).fit(X, Y).predict_distribution(X)
        for seed in range(3)
    ]


def test_moments_are_those_of_a_mixture(regressions):
    together = mixture_of(regressions)
    means = np.array([p.mean for p in regressions])
    np.testing.assert_allclose(together.mean, means.mean(0), rtol=1e-12)
    np.testing.assert_allclose(
        together.variance, np.mean([p.variance for p in regressions], axis=0) + means.var(0), rtol=1e-10
    )
    assert together.num_draws == 24


def test_densities_mix_with_equal_weights(regressions):
    expected = np.log(np.mean(np.exp([p.log_prob(Y) for p in regressions]), axis=0))
    np.testing.assert_allclose(mixture_of(regressions).log_prob(Y), expected, rtol=1e-9, atol=1e-12)


def test_one_alone_is_itself(regressions):
    np.testing.assert_array_equal(mixture_of(regressions[:1]).quantile(0.3), regressions[0].quantile(0.3))


def test_class_probabilities_are_averaged():
    labels = np.where(X[:, 0] > 0, "a", "b")
    parts = [
        MetaGPClassifier(**SMALL, random_state=seed, input_kernel=None).fit(X, labels).predict_distribution(X)
        for seed in range(2)
    ]
    together = mixture_of(parts)
    np.testing.assert_allclose(together.probabilities, np.mean([p.probabilities for p in parts], axis=0), rtol=1e-12)
    p = together.probabilities
    np.testing.assert_allclose(together.entropy, -np.sum(p * np.log(p), axis=1), rtol=1e-9)


def test_what_cannot_be_mixed_is_refused(regressions):
    model = MetaGPRegressor(**SMALL, random_state=0, input_kernel=None).fit(X, Y)
    with pytest.raises(ValueError, match="the inputs differ"):
        mixture_of([*regressions, model.predict_distribution(X[:5])])
    with pytest.raises(ValueError, match="the units of the targets differ"):
        mixture_of([*regressions, model.fit(X, 2 * Y).predict_distribution(X)])
    with pytest.raises(ValueError, match=r"mix function draws.*GaussianPredictive"):
        mixture_of([ExactGPRegressor().fit(X, Y).predict_distribution(X)])
    with pytest.raises(ValueError, match="at least one"):
        mixture_of([])
