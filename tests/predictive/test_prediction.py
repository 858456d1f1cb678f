"""Predictive: every answer against brute force over the draws it mixes. The models are small and untrained."""

import copy
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, optimize, special, stats

from metaprior.compilation import in_float64
from metaprior.likelihoods import Bernoulli, Categorical, Gaussian, Poisson, StudentT
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.predictive import reductions
from metaprior.predictive.draws import NetworkDraws
from metaprior.predictive.mixture import DrawsPredictive
from metaprior.weights import MetaGPSpec, initial_metagp

NUM_DRAWS, NOISE, DEGREES = 24, 0.4, 4.5
KEY = np.array([3, 0], np.uint32)
X = np.random.default_rng(1).standard_normal((7, 2))
OFFSET, SCALE = 10.0, 2.5
GAUSSIAN = Gaussian(np.log([NOISE]))
STUDENT = StudentT(np.log([NOISE]), np.asarray(np.log(DEGREES - 2)))
#: scipy's distribution of y given f.
TWINS = {
    "gaussian": (GAUSSIAN, lambda f: stats.norm(f, NOISE)),
    "student_t": (STUDENT, lambda f: stats.t(DEGREES, f, NOISE)),
    "poisson": (Poisson(), lambda f: stats.poisson(np.exp(f))),
}
LEVELS = np.array([0.001, 0.025, 0.3, 0.5, 0.8, 0.999])


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Seven rows are padded to eight: an answer for a whole chunk takes thirty times as long."""
    monkeypatch.setattr("metaprior.predictive.draws.CHUNK_ROWS", 8)


def _model(num_outputs):
    rng = np.random.default_rng(0)
    network, spec = Dense((2, 3, num_outputs)), MetaGPSpec(n_inducing=5, jitter=1e-6)
    return Model(initial_metagp(spec, network.weight_layers, rng.standard_normal((20, 2)), rng), network, GAUSSIAN)


def seen_through(functions, likelihood):
    """Return the same functions with another likelihood."""
    seen = copy.copy(functions)
    seen.model = dataclasses.replace(functions.model, likelihood=likelihood)
    return seen


def _predictive(functions, likelihood, offset=0.0, scale=1.0, flat=True):
    width = 1 if isinstance(likelihood, Categorical) else functions.model.network.sizes[-1]
    return DrawsPredictive(
        seen_through(functions, likelihood), np.full(width, offset), np.full(width, scale), flat=flat
    )


@pytest.fixture(scope="module")
def functions():
    """Draws of one function."""
    return NetworkDraws(_model(1), KEY, NUM_DRAWS, X)


@pytest.fixture(scope="module")
def f(functions):
    """The draws themselves, [S, N]: the mean of y under a Gaussian is f."""
    found = _predictive(functions, GAUSSIAN).draws()
    assert found.shape == (NUM_DRAWS, len(X))
    assert np.all(np.std(found, axis=0) > 0.1 * NOISE)  # else nothing below is tested
    return found


@pytest.fixture(scope="module")
def three_functions():
    """Draws of three functions."""
    return NetworkDraws(_model(3), KEY, NUM_DRAWS, X)


@pytest.fixture(scope="module")
def f3(three_functions):
    likelihood = Gaussian(np.log(np.full(3, NOISE)))
    return _predictive(three_functions, likelihood, flat=False).draws()


# --- moments, densities, quantiles -----------------------------------------------


@pytest.mark.parametrize("name", TWINS)
def test_moments_are_those_of_the_mixture(name, functions, f):
    likelihood, twin = TWINS[name]
    predictive = _predictive(functions, likelihood)
    each = twin(f)
    assert_allclose(predictive.draws(), each.mean(), rtol=1e-13)
    assert_allclose(predictive.mean, each.mean().mean(0), rtol=1e-12)
    assert_allclose(predictive.epistemic_variance, each.mean().var(0), rtol=1e-10)
    assert_allclose(predictive.aleatoric_variance, each.var().mean(0), rtol=1e-12)
    second = (each.var() + each.mean() ** 2).mean(0) - each.mean().mean(0) ** 2
    assert_allclose(predictive.variance, second, rtol=1e-9)
    assert_allclose(predictive.std, np.sqrt(predictive.variance), rtol=1e-15)


@pytest.mark.parametrize("name", TWINS)
def test_log_prob_is_the_log_of_the_mean_density(name, functions, f):
    likelihood, twin = TWINS[name]
    y = twin(f[0]).rvs(random_state=0)
    each = twin(f).logpmf(y) if name == "poisson" else twin(f).logpdf(y)
    expected = special.logsumexp(each, axis=0) - np.log(NUM_DRAWS)
    assert_allclose(_predictive(functions, likelihood).log_prob(y), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", ["gaussian", "student_t"])
def test_quantile_is_the_root_of_the_mixtures_distribution_function(name, functions, f):
    likelihood, twin = TWINS[name]
    found = _predictive(functions, likelihood).quantile(LEVELS)
    assert found.shape == (len(LEVELS), len(X))
    for n in range(len(X)):
        mixture = twin(f[:, n])
        for level, quantile in zip(LEVELS, found[:, n], strict=True):
            root = optimize.brentq(lambda y, q=level, m=mixture: np.mean(m.cdf(y)) - q, -50, 50, xtol=1e-13)
            slack = np.finfo(float).eps / np.mean(mixture.pdf(root))
            assert abs(quantile - root) <= 1000 * slack + 1e-12


def test_poisson_quantiles_are_the_smallest_counts_that_reach_the_level(functions, f):
    counts = np.arange(200)
    reached = np.mean(stats.poisson(np.exp(f)[..., None]).cdf(counts), axis=0)  # [N, counts]
    expected = [np.argmax(reached >= level, axis=1) for level in LEVELS]
    found = _predictive(functions, Poisson()).quantile(LEVELS)
    assert_array_equal(found, expected)
    assert len(np.unique(found)) > 3


def test_quantile_of_one_level_has_no_axis_for_levels(functions):
    predictive = _predictive(functions, GAUSSIAN)
    assert_array_equal(predictive.quantile(0.3), predictive.quantile(np.array([0.3]))[0])


def test_interval_is_the_central_pair_of_quantiles(functions, f):
    predictive = _predictive(functions, GAUSSIAN)
    low, high = predictive.interval(0.9)
    assert_allclose(low, predictive.quantile(0.05), rtol=1e-9)
    assert_allclose(high, predictive.quantile(0.95), rtol=1e-9)
    held = np.mean(stats.norm(f, NOISE).cdf(high) - stats.norm(f, NOISE).cdf(low), axis=0)
    assert_allclose(held, 0.9, rtol=1e-12)


@pytest.mark.parametrize("name", TWINS)
def test_cdf_is_the_mean_of_the_draws_distribution_functions(name, functions, f):
    likelihood, twin = TWINS[name]
    y = twin(f[0]).rvs(random_state=0)
    assert_allclose(_predictive(functions, likelihood).cdf(y), np.mean(twin(f).cdf(y), axis=0), rtol=1e-11)


def _integrated_crps(name, mixture, y):
    """CRPS = integral of (F(t) - [t >= y])^2, by the trapezium rule on both sides of y, or summed over counts."""
    if name == "poisson":
        counts = np.arange(300)
        return np.sum((np.mean(mixture.cdf(counts[:, None]), axis=1) - (counts >= y)) ** 2)
    reach = np.geomspace(1e-4, 3e3, 4000) - 1e-4
    below, above = (np.mean(mixture.cdf(t[:, None]), axis=1) for t in (y - reach, y + reach))
    return integrate.trapezoid(below**2 + (1 - above) ** 2, reach)


@pytest.mark.parametrize("name", TWINS)
def test_crps_lies_within_the_stated_error_of_the_integral(name, functions, f):
    likelihood, twin = TWINS[name]
    predictive = _predictive(functions, likelihood)
    y = twin(f[0]).rvs(random_state=0)
    expected = [_integrated_crps(name, twin(f[:, n]), y[n]) for n in range(len(X))]
    assert np.all(np.abs(predictive.crps(y) - expected) <= 0.005 * predictive.std)


def test_crps_of_a_gaussian_mixture_is_the_closed_form_of_its_pairs(functions, f):
    def mean_absolute(m, s):
        return 2 * s * stats.norm.pdf(m / s) + m * (2 * stats.norm.cdf(m / s) - 1)

    y = np.linspace(-3, 3, len(X))
    pairs = np.mean(mean_absolute(f[:, None] - f, NOISE * np.sqrt(2)), axis=(0, 1))
    expected = np.mean(mean_absolute(f - y, NOISE), axis=0) - 0.5 * pairs
    assert_allclose(_predictive(functions, GAUSSIAN).crps(y), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["gaussian", "student_t"])
def test_crps_of_one_draw_is_scipys_single_distributions(name):
    functions = NetworkDraws(_model(1), KEY, 1, X)
    likelihood, twin = TWINS[name]
    predictive = _predictive(functions, likelihood)
    mean, y = predictive.mean, np.linspace(-2, 2, len(X))
    z = (y - mean) / NOISE
    if name == "gaussian":
        expected = NOISE * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
        assert_allclose(predictive.crps(y), expected, rtol=1e-11)
    else:
        # E|t - t'| / 2 = 2 sqrt(nu) B(1/2, nu - 1/2) / ((nu - 1) B(1/2, nu/2)^2)
        each, nu = stats.t(DEGREES), DEGREES
        half = 2 * np.sqrt(nu) / (nu - 1) * special.beta(0.5, nu - 0.5) / special.beta(0.5, nu / 2) ** 2
        absolute = z * (2 * each.cdf(z) - 1) + 2 * each.pdf(z) * (nu + z**2) / (nu - 1)
        assert np.all(np.abs(predictive.crps(y) - NOISE * (absolute - half)) <= 0.005 * predictive.std)


def test_crps_of_samples_is_smallest_on_average_for_the_distribution_they_come_from(functions):
    predictive = _predictive(functions, GAUSSIAN)
    y = predictive.sample(0)
    own = np.mean([predictive.crps(row) for row in y])
    for scale, offset in [(2.0, 0.0), (0.5, 0.0), (1.0, NOISE)]:
        other = _predictive(functions, GAUSSIAN, offset, scale)
        assert own < np.mean([other.crps(row) for row in y])


def test_samples_given_the_draws_follow_the_likelihood(functions, f):
    y = _predictive(functions, GAUSSIAN).sample(0)
    assert y.shape == f.shape
    assert stats.kstest(((y - f) / NOISE).ravel(), "norm").pvalue > 1e-6
    assert_array_equal(y, _predictive(functions, GAUSSIAN).sample(0))
    assert not np.array_equal(y, _predictive(functions, GAUSSIAN).sample(1))


# --- entropies -------------------------------------------------------------------


def _mixture_entropy(f, noise):
    grid = np.linspace(f.min() - 9 * noise, f.max() + 9 * noise, 20_001)
    density = np.mean(stats.norm(f[:, None], noise).pdf(grid), axis=0)
    return integrate.simpson(special.entr(density), x=grid)


@pytest.mark.parametrize("noise", [0.05, NOISE, 2.0])
def test_entropy_is_the_mixtures(noise, functions, f):
    expected = [_mixture_entropy(f[:, n], noise) for n in range(len(X))]
    assert_allclose(_predictive(functions, Gaussian(np.log([noise]))).entropy, expected, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.1, 0.5, 2.0])
@pytest.mark.parametrize(
    "likelihood",
    [
        StudentT(np.log([0.3]), np.asarray(np.log(3.0))),
        StudentT(np.log([0.3, 0.5]), np.asarray(0.0)),
        Poisson(),
        Gaussian(np.log(np.full(3, 0.3))),
        Gaussian(np.log(np.full(8, 0.3))),
    ],
    ids=["t", "two t", "poisson", "three gaussian", "eight gaussian"],
)
def test_entropies_lie_within_the_stated_error_of_a_long_average(likelihood, spread):
    num_outputs = getattr(likelihood, "log_noise", getattr(likelihood, "log_scale", np.zeros(1))).size
    rng = np.random.default_rng(0)
    f, num = spread * rng.standard_normal((128, num_outputs)), 10_000
    with in_float64():
        mean = f[rng.integers(len(f), size=num)]
        y = likelihood.from_uniform(jnp.asarray(mean), jnp.asarray(rng.uniform(size=mean.shape)))
        own = np.asarray(likelihood.log_prob(jnp.asarray(mean), y))
        mixed = np.asarray(reductions.log_prob(likelihood, jnp.asarray(np.repeat(f[:, None], num, 1)), y))
        every = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (len(f), 1, num_outputs)), likelihood)
        total, conditional = (np.asarray(v)[0] for v in reductions.entropies(every, jnp.asarray(f[:, None])))
    for found, each in [(total, -mixed), (total - conditional, own - mixed)]:
        assert abs(found - each.mean()) <= 0.02 + 4 * each.std() / np.sqrt(num)


def test_mutual_information_is_entropy_less_the_noises_and_not_negative(functions):
    predictive = _predictive(functions, GAUSSIAN)
    noise = stats.norm(0, NOISE).entropy()
    assert np.all(predictive.mutual_information >= 0)
    assert_allclose(predictive.mutual_information, predictive.entropy - noise, rtol=1e-10, atol=1e-13)
    dull = _predictive(functions, Gaussian(np.log([100.0])))
    # a small signal in large noise: I = var f / (2 noise^2), the next term smaller by (f / noise)^2
    assert_allclose(dull.mutual_information, dull.epistemic_variance / 2e4, rtol=1e-3)


# --- units -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gaussian", pytest.param("student_t", marks=pytest.mark.slow)])
@pytest.mark.slow
def test_units_move_every_answer_as_a_change_of_variable_does(name, functions):
    likelihood, _ = TWINS[name]
    plain = _predictive(functions, likelihood)
    moved = _predictive(functions, likelihood, OFFSET, SCALE)
    y = plain.sample(0)[0]
    assert_allclose(moved.mean, OFFSET + SCALE * plain.mean, rtol=1e-13)
    assert_allclose(moved.epistemic_variance, SCALE**2 * plain.epistemic_variance, rtol=1e-13)
    assert_allclose(moved.variance, SCALE**2 * plain.variance, rtol=1e-13)
    assert_allclose(moved.quantile(LEVELS), OFFSET + SCALE * plain.quantile(LEVELS), rtol=1e-13)
    assert_allclose(moved.draws(), OFFSET + SCALE * plain.draws(), rtol=1e-13)
    assert_allclose(moved.sample(0), OFFSET + SCALE * plain.sample(0), rtol=1e-13)
    assert_allclose(moved.log_prob(OFFSET + SCALE * y), plain.log_prob(y) - np.log(SCALE), rtol=1e-11, atol=1e-12)
    assert_allclose(moved.cdf(OFFSET + SCALE * y), plain.cdf(y), rtol=1e-11)
    assert_allclose(moved.crps(OFFSET + SCALE * y), SCALE * plain.crps(y), rtol=1e-11)
    assert_allclose(moved.entropy, plain.entropy + np.log(SCALE), rtol=1e-13)
    assert_allclose(moved.mutual_information, plain.mutual_information, rtol=1e-9, atol=1e-14)


def test_several_outputs_have_a_column_each_and_one_density(three_functions, f3):
    noise, offset, scale = np.array([0.2, 0.4, 0.9]), np.array([1.0, -2.0, 0.0]), np.array([3.0, 0.5, 1.0])
    predictive = DrawsPredictive(seen_through(three_functions, Gaussian(np.log(noise))), offset, scale, flat=False)
    each = stats.norm(offset + scale * f3, scale * noise)  # [S, N, 3]
    assert_allclose(predictive.mean, each.mean().mean(0), rtol=1e-12)
    assert_allclose(predictive.variance, each.mean().var(0) + each.var().mean(0), rtol=1e-10)
    y = each.mean()[0]
    expected = special.logsumexp(each.logpdf(y).sum(-1), axis=0) - np.log(NUM_DRAWS)
    assert_allclose(predictive.log_prob(y), expected, rtol=1e-11)
    median = predictive.quantile(0.5)
    assert median.shape == (len(X), 3)
    assert_allclose(np.mean(each.cdf(median), axis=0), 0.5, rtol=1e-12)
    assert_allclose(predictive.cdf(y), np.mean(each.cdf(y), axis=0), rtol=1e-11)
    crps = [
        [_integrated_crps("gaussian", stats.norm(m, s), t) for m, s, t in zip(means, scale * noise, row, strict=True)]
        for means, row in zip(np.moveaxis(each.mean(), 0, -1), y, strict=True)
    ]
    assert_allclose(predictive.crps(y), crps, rtol=1e-4)  # the error of the trapezia


# --- classes ---------------------------------------------------------------------


@pytest.fixture(scope="module", params=["categorical", "bernoulli"])
def classes(request, functions, f, three_functions, f3):
    """A classifier's Predictive, and the class probabilities of every draw, [S, N, C]."""
    if request.param == "categorical":
        return _predictive(three_functions, Categorical()), special.softmax(f3, axis=-1)
    return _predictive(functions, Bernoulli()), np.stack([special.expit(-f), special.expit(f)], axis=-1)


def test_class_probabilities_are_the_mean_over_draws_and_sum_to_one(classes):
    predictive, p = classes
    assert_allclose(predictive.draws(), p, rtol=1e-12)
    assert_allclose(predictive.probabilities, p.mean(0), rtol=1e-12)
    assert_allclose(predictive.probabilities.sum(1), 1, rtol=1e-14)


def test_class_entropy_and_mutual_information_equal_numpys(classes):
    predictive, p = classes
    total = special.entr(p.mean(0)).sum(-1)
    assert_allclose(predictive.entropy, total, rtol=1e-11)
    expected = total - special.entr(p).sum(-1).mean(0)
    assert_allclose(predictive.mutual_information, expected, rtol=1e-8, atol=1e-14)
    assert np.all(predictive.mutual_information >= 0)


def test_class_log_prob_is_the_log_of_the_mean_probability(classes):
    predictive, p = classes
    labels = np.arange(len(X)) % p.shape[-1]
    expected = np.log(p.mean(0)[np.arange(len(X)), labels])
    assert_allclose(predictive.log_prob(labels), expected, rtol=1e-11)


def test_class_samples_come_as_often_as_the_probabilities_say(classes):
    predictive, p = classes
    labels = np.stack([predictive.sample(seed) for seed in range(40)])  # [40, S, N]
    for c in range(p.shape[-1]):
        error = np.sqrt(np.sum(p[..., c] * (1 - p[..., c])) * 40)
        assert abs(np.sum(labels == c) - 40 * np.sum(p[..., c])) < 5 * error


def test_classes_have_no_quantile(classes):
    with pytest.raises(AttributeError, match="quantile: classes have no order; use probabilities"):
        classes[0].quantile(0.5)


def test_classes_have_no_distribution_function_and_no_crps(classes):
    with pytest.raises(AttributeError, match="cdf: classes have no order; use probabilities"):
        classes[0].cdf(np.zeros(len(X)))
    with pytest.raises(AttributeError, match="crps: classes have no order; use log_prob"):
        classes[0].crps(np.zeros(len(X)))


def test_regression_has_no_probabilities(functions):
    with pytest.raises(AttributeError, match="probabilities: this is a regression; use mean"):
        _ = _predictive(functions, GAUSSIAN).probabilities


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, [0.5, 1.5], np.nan])
def test_quantile_level_outside_the_unit_interval_is_refused(functions, level):
    with pytest.raises(ValueError, match="levels must lie strictly between 0 and 1"):
        _predictive(functions, GAUSSIAN).quantile(np.asarray(level))


@pytest.mark.parametrize("question", ["log_prob", "cdf", "crps"])
def test_targets_of_the_wrong_shape_are_refused(question, functions):
    ask = getattr(_predictive(functions, GAUSSIAN), question)
    with pytest.raises(ValueError, match=f"{question}: expected 7 targets, one per row; got 6"):
        ask(np.zeros(6))
    with pytest.raises(ValueError, match=rf"{question}: expected 1 column.*got 2"):
        ask(np.zeros((7, 2)))
