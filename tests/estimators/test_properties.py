"""What holds for all answers and for all configurations, tried on values that hypothesis chooses."""

import tempfile
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

import metaprior
from chosen import EPS, POSITIVE, bases, composed, few, made, numbers, on_one_column, recipe
from metaprior import MetaGPRegressor, Projection
from metaprior.estimators.fit import prepare_fit, store_fit
from metaprior.inference import Fit
from metaprior.kernels import RBF, Kernel
from metaprior.likelihoods import Bernoulli, Categorical, Gaussian, Likelihood, Poisson, StudentT
from metaprior.predictive import Predictive
from metaprior.predictive.draws import FunctionDraws
from metaprior.predictive.from_sklearn import GaussianMarginals
from metaprior.predictive.mixture import DrawsPredictive
from metaprior.weight_gp import Pathwise

# --- predictive distributions -----------------------------------------------------------------------------------------

NUM_DRAWS, NUM_ROWS = 6, 4
FUNCTIONS = numbers(-5, 5, (NUM_DRAWS, NUM_ROWS, 1))
LEVELS = st.lists(st.floats(0.01, 0.99), min_size=2, max_size=3, unique=True).map(sorted)
OFFSETS, UNITS = st.floats(-1e3, 1e3), st.floats(1e-12, 1e12)
NOISES = st.floats(0.01, 3.0)


class GivenDraws(FunctionDraws):
    """Function draws that are given, [S, N, K]."""

    def __init__(self, f: np.ndarray, likelihood: Likelihood) -> None:
        self.f, self.num_draws, self.x, self.whole = f, len(f), np.zeros((f.shape[1], 1)), False
        self.given = likelihood

    has_gaussians, gaussians = False, None

    @property
    def likelihood(self):
        return jax.tree.map(
            lambda leaf: np.broadcast_to(leaf, (len(self.f), 1, *np.atleast_1d(leaf).shape)), self.given
        )

    def chunks(self):
        yield slice(0, len(self.x)), self.f

    def coherent(self):
        return self

    def num_outputs(self):
        return self.f.shape[-1]


def predictive(f: np.ndarray, likelihood: Likelihood, offset: float = 0.0, scale: float = 1.0) -> Predictive:
    return DrawsPredictive(GivenDraws(f, likelihood), np.array([offset]), np.array([scale]), flat=True)


def gaussian(noise: float) -> Gaussian:
    return Gaussian(np.log([noise]))


@few
@given(f=FUNCTIONS, noise=NOISES, offset=OFFSETS, scale=UNITS)
def test_variance_is_epistemic_and_aleatoric_and_follows_the_unit_of_the_targets(f, noise, offset, scale):
    said = predictive(f, gaussian(noise), offset, scale)
    assert np.all(said.epistemic_variance >= 0)
    assert_array_equal(said.variance, said.epistemic_variance + said.aleatoric_variance)
    twin = np.var(f[..., 0], axis=0) + noise**2
    # f is at most 5 and its mean is rounded; noise is an exponential of a logarithm
    assert_allclose(said.variance, scale**2 * twin, rtol=0, atol=scale**2 * 20 * EPS * (25 + noise**2))
    assert_allclose(said.mean, offset + scale * np.mean(f[..., 0], axis=0), rtol=0, atol=20 * EPS * (1e3 + 5 * scale))


def _assert_ordered(said: Predictive, levels: list[float]) -> None:
    """Quantiles rise with their level and intervals of higher levels hold those of lower ones."""
    found = said.quantile(np.array(levels))
    slack = 1e-12 * (1 + np.abs(found).max())  # where bisection ends
    assert np.all(np.diff(found, axis=0) >= -slack)
    inner, outer = (said.interval(level) for level in (levels[0], levels[-1]))
    assert np.all(outer[0] <= inner[0] + slack)
    assert np.all(inner[0] <= inner[1] + slack)
    assert np.all(inner[1] <= outer[1] + slack)


@few
@given(f=FUNCTIONS, noise=NOISES, levels=LEVELS)
def test_quantiles_rise_intervals_are_nested_and_the_distribution_function_undoes_them(f, noise, levels):
    said = predictive(f, gaussian(noise))
    _assert_ordered(said, levels)
    for level in levels:
        assert_allclose(said.cdf(said.quantile(level)), level, rtol=0, atol=1e-12)


@pytest.mark.slow
@few
@given(f=FUNCTIONS, noise=NOISES, excess=st.floats(0.5, 20.0), levels=LEVELS)
def test_quantiles_under_heavy_tails_rise_and_intervals_are_nested(f, noise, excess, levels):
    said = predictive(f, StudentT(np.log([noise]), np.asarray(np.log(excess))))
    _assert_ordered(said, levels)
    for level in levels:
        assert_allclose(said.cdf(said.quantile(level)), level, rtol=0, atol=1e-9)


@pytest.mark.slow
@few
@given(f=FUNCTIONS, levels=LEVELS)
def test_quantiles_of_counts_are_the_first_counts_that_reach_their_level(f, levels):
    said = predictive(f, Poisson())
    _assert_ordered(said, levels)
    for level in levels:
        count = said.quantile(level)
        assert_array_equal(count, np.round(count))
        assert np.all(said.cdf(count) >= level - 1e-9)
        assert np.all(said.cdf(count - 1) <= level + 1e-9)


@few
@given(f=FUNCTIONS, noise=NOISES, y=numbers(-20, 20, NUM_ROWS))
def test_the_ranked_score_lies_between_nought_and_the_mean_absolute_error(f, noise, y):
    found = predictive(f, gaussian(noise)).crps(y)
    z = (f[..., 0] - y) / noise
    density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
    mean_absolute = np.mean(noise * (z * (2 * ndtr(z) - 1) + 2 * density), axis=0)
    rounding = 100 * EPS * 25
    assert np.all(found >= -rounding)
    assert np.all(found <= mean_absolute + rounding)


@few
@given(f=numbers(-5, 5, (1, NUM_ROWS, 1)), y=numbers(-20, 20, NUM_ROWS))
def test_the_ranked_score_of_a_point_mass_is_the_absolute_error(f, y):
    noise = 1e-13
    found = predictive(np.repeat(f, NUM_DRAWS, axis=0), gaussian(noise)).crps(y)
    assert_allclose(found, np.abs(f[0, :, 0] - y), rtol=0, atol=noise + 100 * EPS * 25)
    plain = GaussianMarginals(f[0, :, 0], np.zeros(NUM_ROWS)).crps(y)
    assert_allclose(plain, np.abs(f[0, :, 0] - y), rtol=4 * EPS, atol=np.finfo(np.float64).tiny)


@pytest.mark.parametrize(("likelihood", "columns"), [(Categorical(), 3), (Bernoulli(), 1)])
@few
@given(data=st.data())
def test_class_probabilities_sum_to_one_and_the_entropy_holds_the_mutual_information(likelihood, columns, data):
    f = data.draw(numbers(-50, 50, (NUM_DRAWS, NUM_ROWS, columns)))
    said = predictive(f, likelihood)
    p = said.probabilities
    assert np.all(p >= 0)
    assert_allclose(p.sum(axis=1), 1, rtol=0, atol=100 * EPS)
    assert np.all(said.mutual_information >= 0)
    assert np.all(said.mutual_information <= said.entropy + 100 * EPS)
    assert np.all(said.entropy <= np.log(p.shape[1]) + 100 * EPS)


# --- files ------------------------------------------------------------------------------------------------------------


def held_and_bounded(value: float) -> Kernel:
    return RBF(value, fixed="lengthscale", bounds={"lengthscale": (value / 2, 3 * value)})


def pair(*parts: Kernel) -> tuple[Kernel, ...]:
    return parts


#: With one value for all columns, so that a kernel fits any number of them.
PLAIN = composed(st.one_of(bases(POSITIVE), on_one_column(bases(POSITIVE)), recipe(held_and_bounded, POSITIVE)))
PROJECTIONS = recipe(
    Projection, st.lists(st.integers(1, 3), max_size=1).map(lambda dims: (*dims, 2)), st.sampled_from(["tanh", "relu"])
)
CONFIGURATIONS = st.fixed_dictionaries(
    {
        "hidden_layer_sizes": st.one_of(st.lists(st.integers(1, 4), max_size=2), st.tuples(st.integers(1, 4))),
        "activation": st.sampled_from(["tanh", "relu", "gelu", "identity"]),
        "latent_dim": st.just(2),
        "n_inducing": st.sampled_from(["auto", 1, 2]),
        "weight_kernel": st.one_of(st.none(), PLAIN, recipe(pair, PLAIN, PLAIN)),
        "input_kernel": st.one_of(st.none(), PLAIN),
        "input_projection": st.one_of(st.none(), PROJECTIONS),
        "weight_gp": st.sampled_from(["shared", "per_layer"]),
        "conditional": st.one_of(
            st.sampled_from(["diag", "fitc", "full"]), recipe(Pathwise, st.integers(1, 99), st.integers(1, 99))
        ),
        "heteroscedastic_weights": st.booleans(),
        "likelihood": st.sampled_from(["gaussian", "student_t"]),
        "noise": st.one_of(st.none(), POSITIVE, POSITIVE.map(np.float64)),
        "learning_rate_init": st.floats(1e-300, 1e300),
        "dtype": st.sampled_from(["float32", "float64"]),
        "random_state": st.one_of(st.integers(0, 2**31 - 1), recipe(np.random.RandomState, st.integers(0, 99))),
    }
)
X, Y = np.random.default_rng(0).standard_normal((9, 2)), np.arange(9.0)


def assert_same(ours: object, other: object) -> None:
    """Two things are of one type and of the same bits, part by part."""
    assert type(ours) is type(other)
    if isinstance(ours, np.ndarray | np.generic):
        assert (ours.dtype, ours.shape, ours.tobytes()) == (other.dtype, other.shape, other.tobytes())
    elif isinstance(ours, eqx.Module):
        for name in ours.__dataclass_fields__:
            assert_same(getattr(ours, name), getattr(other, name))
    elif isinstance(ours, np.random.RandomState):
        assert_same(list(ours.get_state()), list(other.get_state()))
    elif isinstance(ours, Projection):
        assert_same(vars(ours), vars(other))
    elif isinstance(ours, dict):
        assert ours.keys() == other.keys()
        assert_same(list(ours.values()), [other[name] for name in ours])
    elif isinstance(ours, list | tuple):
        assert len(ours) == len(other)
        for one, two in zip(ours, other, strict=True):
            assert_same(one, two)
    else:
        assert ours == other


@few
@given(configuration=CONFIGURATIONS)
def test_what_is_loaded_is_what_was_saved_for_any_configuration(configuration):
    """With the model as training would start from it: nothing is compiled for a configuration of its own."""
    model = MetaGPRegressor(**{"input_kernel": None, **{name: made(value) for name, value in configuration.items()}})
    prepared = prepare_fit(model, X, Y)
    job = prepared.method.job(prepared.problem, prepared.seed)
    untrained = prepared.method.with_rows(Fit(job.model, {"elbo": np.zeros(1)}, 1, 0, 0.0, converged=False), job.data)
    store_fit(model, prepared, prepared.method.attributes(untrained, prepared.problem, prepared.seed))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.metaprior"
        model.save(path)
        twin = metaprior.load(path)
    assert type(twin) is MetaGPRegressor
    assert_same(vars(twin), vars(model))
