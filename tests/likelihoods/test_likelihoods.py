"""Likelihoods against scipy: densities, moments, distribution functions, quadrature nodes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from metaprior.likelihoods import Bernoulli, Categorical, Gaussian, Heteroscedastic, Poisson, StudentT, invert
from metaprior.likelihoods.base import NUM_NODES
from metaprior.likelihoods.gaussian import NOISE_HOLD

RNG = np.random.default_rng(0)
F = RNG.normal(size=(5, 2))
NOISE, DEGREES = np.array([0.3, 1.7]), 4.5
EPS = np.finfo(np.float64).eps

GAUSSIAN = Gaussian(np.log(NOISE))
STUDENT = StudentT(np.log(NOISE), np.asarray(np.log(DEGREES - 2)))
POISSON = Poisson()
HETEROSCEDASTIC = Heteroscedastic(np.log(NOISE), np.log(np.full(NOISE.shape, 0.7)))
#: Each with one function an output: ours, and scipy's distribution given f.
OUTPUT_PAIRS = {
    "gaussian": (GAUSSIAN, lambda f: stats.norm(f, NOISE)),
    "student_t": (STUDENT, lambda f: stats.t(DEGREES, f, NOISE)),
    "poisson": (POISSON, lambda f: stats.poisson(np.exp(f))),
}
CONTINUOUS = ["gaussian", "student_t"]
each_output_pair = pytest.mark.parametrize(("likelihood", "twin"), OUTPUT_PAIRS.values(), ids=OUTPUT_PAIRS)


def _one(name, output):
    """The likelihood and its twin for one output alone."""
    scale = NOISE[output : output + 1]
    return {
        "gaussian": (Gaussian(np.log(scale)), lambda f: stats.norm(f, scale)),
        "student_t": (
            StudentT(np.log(scale), np.asarray(np.log(DEGREES - 2))),
            lambda f: stats.t(DEGREES, f, scale),
        ),
        "poisson": (POISSON, lambda f: stats.poisson(np.exp(f))),
    }[name]


_method = eqx.filter_jit(lambda likelihood, name, *arrays: getattr(likelihood, name)(*arrays))


def _call(likelihood, name, *arrays):
    """Call a method in float64 and return NumPy."""
    with jax.enable_x64(True):
        answer = _method(likelihood, name, *(jnp.asarray(a, jnp.float64) for a in arrays))
        return jax.tree.map(np.asarray, answer)


# --- densities and moments -------------------------------------------------------


@each_output_pair
def test_log_prob_is_the_sum_of_scipys_over_outputs(likelihood, twin):
    y = twin(F).rvs(random_state=1)
    log_density = twin(F).logpmf(y) if likelihood is POISSON else twin(F).logpdf(y)
    np.testing.assert_allclose(_call(likelihood, "log_prob", F, y), log_density.sum(-1), rtol=1e-12)


@each_output_pair
def test_mean_and_variance_equal_scipys(likelihood, twin):
    np.testing.assert_allclose(_call(likelihood, "mean", F), twin(F).mean(), rtol=1e-13)
    np.testing.assert_allclose(_call(likelihood, "variance", F), twin(F).var(), rtol=1e-13)


@each_output_pair
def test_draws_along_a_leading_axis_are_treated_one_by_one(likelihood, twin):
    f = RNG.normal(size=(3, 5, 2))
    y = np.broadcast_to(twin(f[0]).rvs(random_state=2), f.shape)
    together = _call(likelihood, "log_prob", f, y)
    apart = np.stack([_call(likelihood, "log_prob", f[s], y[s]) for s in range(3)])
    np.testing.assert_allclose(together, apart, rtol=1e-14)


def test_categorical_probabilities_are_the_softmax():
    f = RNG.normal(size=(6, 3)) * 5
    labels = np.array([0, 1, 2, 0, 1, 2])
    p = special.softmax(f, axis=1)
    np.testing.assert_allclose(
        _call(Categorical(), "log_prob", f, labels[:, None]), np.log(p[np.arange(6), labels]), rtol=1e-12
    )
    np.testing.assert_allclose(_call(Categorical(), "mean", f), p, rtol=1e-13)
    np.testing.assert_allclose(_call(Categorical(), "variance", f), p * (1 - p), rtol=1e-12)


def test_bernoulli_probabilities_are_the_sigmoid():
    f, labels = RNG.normal(size=(6, 1)) * 5, np.array([0, 1, 0, 1, 0, 1])
    p = special.expit(f[:, 0])
    np.testing.assert_allclose(
        _call(Bernoulli(), "log_prob", f, labels[:, None]), stats.bernoulli(p).logpmf(labels), rtol=1e-12
    )
    np.testing.assert_allclose(_call(Bernoulli(), "mean", f), np.column_stack([1 - p, p]), rtol=1e-13)
    np.testing.assert_allclose(_call(Bernoulli(), "variance", f)[:, 1], stats.bernoulli(p).var(), rtol=1e-12)


def test_bernoulli_is_the_categorical_of_nought_and_f():
    f, labels = RNG.normal(size=(6, 1)), np.array([0, 1, 0, 1, 0, 1])[:, None]
    two = np.concatenate([np.zeros_like(f), f], axis=1)
    np.testing.assert_allclose(
        _call(Bernoulli(), "log_prob", f, labels), _call(Categorical(), "log_prob", two, labels), rtol=1e-13
    )


@pytest.mark.parametrize(("likelihood", "width"), [(Categorical(), 3), (Bernoulli(), 1)])
def test_class_log_prob_is_finite_for_extreme_functions(likelihood, width):
    f = np.linspace(-800, 800, width) if width > 1 else np.array([800.0])
    found = _call(likelihood, "log_prob", f[None], np.zeros((1, 1)))
    np.testing.assert_allclose(found, [-1600.0 if width > 1 else -800.0], rtol=1e-12)


# --- distribution functions ------------------------------------------------------


@each_output_pair
def test_cdf_equals_scipys(likelihood, twin):
    y = F + 3 * RNG.normal(size=F.shape)
    np.testing.assert_allclose(_call(likelihood, "cdf", F, y), twin(F).cdf(y), rtol=1e-10, atol=1e-14)


@each_output_pair
def test_cdf_broadcasts_one_y_over_draws(likelihood, twin):
    f = RNG.normal(size=(3, 5, 2))
    y = np.abs(RNG.normal(size=(1, 5, 2)))
    np.testing.assert_allclose(_call(likelihood, "cdf", f, y), twin(f).cdf(y), rtol=1e-10, atol=1e-14)


LEVELS = np.array([1e-6, 0.01, 0.25, 0.4999, 0.5, 0.7, 0.999, 1 - 1e-6])


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("level", LEVELS)
def test_scipys_distribution_function_undoes_from_uniform(name, level):
    """Not scipy's own quantiles: those of Student's t are good to 1e-11 in some versions."""
    likelihood, twin = OUTPUT_PAIRS[name]
    found = _call(likelihood, "from_uniform", F, np.full(F.shape, level))
    # a level is as sharp as its own rounding, and as the rounding of the quantile times the density there
    slack = EPS + EPS * np.abs(found) * twin(F).pdf(found)
    assert np.all(np.abs(twin(F).cdf(found) - level) <= 100 * slack)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_cdf_undoes_from_uniform(name):
    likelihood, _ = OUTPUT_PAIRS[name]
    u = RNG.uniform(1e-4, 1 - 1e-4, F.shape)
    np.testing.assert_allclose(_call(likelihood, "cdf", F, _call(likelihood, "from_uniform", F, u)), u, rtol=1e-11)


@pytest.mark.parametrize("rate", [1e-3, 0.3, 1.0, 7.5, 400.0, 1e5])
def test_poisson_quantiles_equal_scipys(rate):
    counts = stats.poisson(rate).ppf([1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
    reached = stats.poisson(rate).cdf(counts)
    # just before and just after a count is reached, and between
    u = np.concatenate([reached * (1 - 1e-9), np.minimum(reached * (1 + 1e-9), 1 - 1e-12), LEVELS])
    found = _call(POISSON, "from_uniform", np.full((len(u), 1), np.log(rate)), u[:, None])[:, 0]
    np.testing.assert_array_equal(found, stats.poisson(rate).ppf(u))


@pytest.mark.parametrize("rate", [1e-3, 0.7, 5.0, 9.99, 10.01, 40.0, 3e3])
def test_quick_poisson_quantiles_are_exact_for_small_rates_and_near_for_large(rate):
    u = (np.arange(4096) + 0.5) / 4096
    found = _call(POISSON, "quick_quantile", np.full((len(u), 1), np.log(rate)), u[:, None])[:, 0]
    off = np.abs(found - stats.poisson(rate).ppf(u))
    assert np.max(off) <= (0 if rate <= 10 else 1)
    assert np.mean(off) <= 0.005 * np.sqrt(rate)


def test_poisson_cdf_is_a_step_function_that_is_nought_below_zero():
    f = np.full((4, 1), np.log(1.3))
    y = np.array([-0.5, 0.0, 0.999, 1.0])[:, None]
    expected = stats.poisson(1.3).cdf([-1, 0, 0, 1])[:, None]
    np.testing.assert_allclose(_call(POISSON, "cdf", f, y), expected, rtol=1e-12)


def test_invert_finds_the_place_of_a_level_to_the_last_bit():
    levels = np.array([1e-3, 0.3, 0.9])
    with jax.enable_x64(True):
        found = invert(jnp.tanh, jnp.asarray(levels), jnp.full(3, -5.0), jnp.full(3, 5.0))
    np.testing.assert_allclose(np.asarray(found), np.arctanh(levels), rtol=0, atol=20 * EPS)


# --- nodes -----------------------------------------------------------------------


@pytest.mark.parametrize("output", [0, 1])
def test_gaussian_nodes_integrate_polynomials_of_degree_fifteen_exactly(output):
    likelihood, twin = _one("gaussian", output)
    f = F[:, output : output + 1]
    y, weight = _call(likelihood, "nodes", f)
    assert y.shape == (8, 5, 1)
    for degree in (0, 1, 2, 3, 8, 15):
        moments = [stats.norm(m, NOISE[output]).moment(degree) if degree else 1.0 for m in f[:, 0]]
        size = np.sum(weight * np.abs(y[..., 0]) ** degree, axis=0)  # of the terms that cancel
        error = np.abs(np.sum(weight * y[..., 0] ** degree, axis=0) - moments)
        assert np.all(error <= 1e-12 * np.maximum(size, 1))


def test_entropy_from_gaussian_nodes_equals_the_closed_form():
    likelihood, twin = _one("gaussian", 0)
    y, weight = _call(likelihood, "nodes", F[:, :1])
    own = _call(likelihood, "log_prob", np.broadcast_to(F[:, :1], y.shape), y)
    closed_form = 0.5 * np.log(2 * np.pi * np.e * NOISE[0] ** 2)
    np.testing.assert_allclose(-np.sum(weight * own, axis=0), closed_form, rtol=1e-13)


@pytest.mark.parametrize("name", ["student_t", "poisson"])
def test_equal_weight_nodes_give_the_mean_within_the_bound_of_a_monotone_quantile_function(name):
    """Midpoint rule: a stratum errs by at most its own rise, the last by what its tail holds."""
    likelihood, twin = _one(name, 1)
    f = F[:, 1:]
    y, weight = _call(likelihood, "nodes", f)
    assert y.shape == (NUM_NODES, 5, 1)
    np.testing.assert_allclose(weight, 1 / NUM_NODES, rtol=1e-14)
    midpoints = (np.arange(NUM_NODES) + 0.5) / NUM_NODES
    levels = np.broadcast_to(midpoints[:, None, None], y.shape)
    np.testing.assert_allclose(y, _call(likelihood, "from_uniform", f, levels), rtol=1e-12, atol=1e-12)
    for row in range(len(f)):
        bound = _midpoint_bound(twin(f[row]).ppf)
        error = np.sum(weight[:, row] * y[:, row, 0]) - twin(f[row]).mean()[0]
        assert np.abs(error) <= bound
        assert bound < 0.5 * twin(f[row]).std()[0] + 1 / NUM_NODES  # sharp enough to tell


def _midpoint_bound(quantile, fine=20_000):
    step = 1 / NUM_NODES
    inner = (quantile(1 - step) - quantile(step)) * step
    places = (np.arange(fine) + 0.5) / fine * step
    tails = [np.mean(quantile(start + places)) - quantile(start + step / 2) for start in (0, 1 - step)]
    return inner.item() + step * np.sum(np.abs(tails))


@pytest.mark.parametrize("name", OUTPUT_PAIRS)
def test_nodes_of_several_outputs_fill_the_unit_cube_evenly(name):
    likelihood, twin = OUTPUT_PAIRS[name]
    y, weight = _call(likelihood, "nodes", F)
    assert y.shape == (NUM_NODES, *F.shape)
    assert weight.shape == (NUM_NODES, F.shape[0])
    np.testing.assert_allclose(weight.sum(0), 1, rtol=1e-14)
    if name == "poisson":
        np.testing.assert_array_equal(y, np.round(y))
        return
    u = twin(F).cdf(y)[:, 0]  # the same points of the cube for every row
    np.testing.assert_allclose(twin(F).cdf(y), np.broadcast_to(u[:, None], y.shape), atol=1e-9)
    steps = np.arange(NUM_NODES + 1) / NUM_NODES
    for column in np.sort(u, axis=0).T:
        discrepancy = max(np.max(steps[1:] - column), np.max(column - steps[:-1]))
        assert discrepancy < 2 / NUM_NODES  # random points: about 0.2
    assert abs(np.corrcoef(u.T)[0, 1]) < 0.3


@pytest.mark.parametrize(("likelihood", "f"), [(Categorical(), RNG.normal(size=(4, 3))), (Bernoulli(), F[:4, :1])])
def test_class_nodes_are_the_classes_with_their_probabilities(likelihood, f):
    y, weight = _call(likelihood, "nodes", f)
    p = _call(likelihood, "mean", f)
    np.testing.assert_array_equal(y[..., 0], np.broadcast_to(np.arange(p.shape[1])[:, None], p.T.shape))
    np.testing.assert_array_equal(weight, p.T)
    np.testing.assert_allclose(weight.sum(0), 1, rtol=1e-14)


# --- release times ---------------------------------------------------------------


@pytest.mark.parametrize(("learned", "time"), [(True, np.float32(NOISE_HOLD)), (False, np.inf)])
def test_noise_is_held_at_first_and_for_ever_when_it_was_given(learned, time):
    for likelihood in (Gaussian(np.log(NOISE), learned), StudentT(np.log(NOISE), np.asarray(0.0), learned)):
        times = likelihood.release_times()
        assert jax.tree.structure(times) == jax.tree.structure(likelihood)
        assert all(leaf == time for leaf in jax.tree.leaves(times))


@pytest.mark.parametrize("likelihood", [Categorical(), Bernoulli(), Poisson()])
def test_likelihoods_without_parameters_have_nothing_to_release(likelihood):
    assert jax.tree.leaves(likelihood.release_times()) == []


# --- noise that depends on the input -----------------------------------------------


def _with_own_noise(seed=5):
    """Functions f and g, and scipy's distribution with each place's own noise."""
    rng = np.random.default_rng(seed)
    f, g = rng.standard_normal((2, *F.shape))
    return np.concatenate([f, g], axis=-1), stats.norm(f, np.sqrt(0.01**2 + (NOISE * np.exp(0.7 * g)) ** 2))


def test_heteroscedastic_answers_are_scipys_with_each_places_own_noise():
    both, twin = _with_own_noise()
    y = twin.rvs(random_state=1)
    u = np.random.default_rng(2).uniform(0.01, 0.99, y.shape)
    np.testing.assert_allclose(_call(HETEROSCEDASTIC, "log_prob", both, y), twin.logpdf(y).sum(-1), rtol=1e-10)
    np.testing.assert_allclose(_call(HETEROSCEDASTIC, "mean", both), twin.mean(), rtol=1e-12)
    np.testing.assert_allclose(_call(HETEROSCEDASTIC, "variance", both), twin.var(), rtol=1e-10)
    np.testing.assert_allclose(_call(HETEROSCEDASTIC, "cdf", both, y), twin.cdf(y), rtol=1e-9)
    np.testing.assert_allclose(_call(HETEROSCEDASTIC, "from_uniform", both, u), twin.ppf(u), rtol=1e-9)


def test_heteroscedastic_nodes_have_the_moments_of_each_places_own_noise():
    both, _ = _with_own_noise()
    one = Heteroscedastic(np.log(NOISE[:1]), np.log(np.full(1, 0.7)))
    f, g = both[..., :1], both[..., NOISE.size : NOISE.size + 1]
    y, weight = _call(one, "nodes", np.concatenate([f, g], axis=-1))
    variance = np.sum(weight[..., None] * (y - f) ** 2, axis=0)
    np.testing.assert_allclose(variance, 0.01**2 + (NOISE[:1] * np.exp(0.7 * g)) ** 2, rtol=1e-9)


def test_heteroscedastic_takes_two_functions_an_output_and_holds_what_it_learns():
    assert HETEROSCEDASTIC.num_functions(3) == 6
    released = Heteroscedastic(np.zeros(2), np.zeros(2), hold=0.4).release_times()
    assert (released.log_noise, released.log_gain) == (pytest.approx(0.4), pytest.approx(0.4))
