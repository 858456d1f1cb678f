"""What holds for all values, tried on values that hypothesis chooses, the same ones in every run."""

import operator
import tempfile
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

import metaprior
from metaprior import MetaGPRegressor, Projection, metrics
from metaprior.inputs import InputMap
from metaprior.kernels import (
    RBF,
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
)
from metaprior.latents import UnitLatents
from metaprior.likelihoods import Bernoulli, Categorical, Gaussian, Likelihood, Poisson, StudentT
from metaprior.networks.activations import activation_named
from metaprior.predictive import Predictive
from metaprior.predictive.draws import FunctionDraws
from metaprior.predictive.from_sklearn import GaussianMarginals
from metaprior.predictive.mixture import DrawsPredictive
from metaprior.weight_gp import Pathwise, Whitened

EPS = np.finfo(np.float64).eps
#: One thing is compiled or computed a test, so that an example takes milliseconds; nothing is kept between runs.
few = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


#: A function and its arguments, which may be recipes: hypothesis chooses them, the test makes the thing.
Recipe = tuple
Recipes = st.SearchStrategy[Recipe]


def recipe(function: Callable, *arguments: st.SearchStrategy) -> Recipes:
    return st.tuples(st.just(function), *arguments)


def made(thing: object) -> object:
    """What a recipe makes; anything else is itself."""
    if isinstance(thing, tuple) and thing and callable(thing[0]):
        return thing[0](*map(made, thing[1:]))
    return thing


def numbers(low: float, high: float, shape: int | tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, shape, elements=st.floats(low, high, allow_subnormal=False))


# --- kernels ----------------------------------------------------------------------------------------------------------

POSITIVE = st.floats(0.05, 20.0)
POINTS = numbers(-10, 10, (5, 2))
SCALES = numbers(1e-3, 1e3, 2)


def bases(value: st.SearchStrategy) -> Recipes:
    """Every kernel, with hyper-parameters of its own."""
    return st.one_of(
        *[recipe(family, value) for family in (RBF, Matern12, Matern32, Matern52, Linear)],
        recipe(RationalQuadratic, value, POSITIVE),
        recipe(Periodic, value, value),
        recipe(Constant, POSITIVE),
    )


def composed(base: Recipes) -> Recipes:
    """Sums, products and scalings of kernels."""
    return st.recursive(
        base,
        lambda inner: st.one_of(
            recipe(operator.add, inner, inner),
            recipe(operator.mul, inner, inner),
            recipe(operator.mul, inner, POSITIVE),
        ),
        max_leaves=3,
    )


def on_one_column(base: Recipes) -> Recipes:
    return recipe(Kernel.on, base, st.integers(0, 1))


#: Kernels of two columns: hyper-parameters one a column, or one for both, or on one column alone.
KERNELS = composed(
    st.one_of(bases(st.tuples(POSITIVE, POSITIVE).map(list)), bases(POSITIVE), on_one_column(bases(POSITIVE)))
)


def _matrix(kernel: Kernel, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The cross-matrix, an operation at a time: nothing is compiled for a kernel of its own."""
    with jax.enable_x64(True):
        return np.asarray(kernel.bound_to(2)(jnp.asarray(a), jnp.asarray(b)))


@few
@given(kernel=KERNELS, points=POINTS)
def test_a_kernels_matrix_is_symmetric_positive_semidefinite_and_has_its_diagonal(kernel, points):
    kernel = made(kernel)
    gram = _matrix(kernel, points, points)
    with jax.enable_x64(True):
        diagonal = np.asarray(kernel.bound_to(2).diagonal(jnp.asarray(points)))
    # some tens of operations an entry, each right to a unit of rounding; a factor with itself is the largest entry
    rounding = 100 * EPS * np.max(diagonal)
    assert_allclose(gram, gram.T, rtol=0, atol=rounding)
    assert_allclose(diagonal, np.diag(gram), rtol=0, atol=rounding)
    assert np.linalg.eigvalsh(0.5 * (gram + gram.T)).min() >= -len(points) * rounding


@few
@given(left=KERNELS, right=KERNELS, factor=POSITIVE, a=POINTS, b=POINTS)
def test_kernels_compose_as_their_matrices_do(left, right, factor, a, b):
    left, right = made(left), made(right)
    one, other = _matrix(left, a, b), _matrix(right, a, b)
    assert_array_equal(_matrix(left + right, a, b), one + other)
    assert_array_equal(_matrix(left * right, a, b), one * other)
    assert_allclose(_matrix(factor * left, a, b), factor * one, rtol=4 * EPS)  # exp(log(factor))
    assert_allclose(_matrix(left + factor, a, b), one + factor, rtol=4 * EPS, atol=4 * EPS * factor)


@few
@given(kernel=KERNELS, a=POINTS, b=POINTS)
def test_turning_points_round_turns_the_matrix_round(kernel, a, b):
    kernel = made(kernel)
    ahead, back = _matrix(kernel, a, b), _matrix(kernel, b, a)
    largest = np.sqrt(np.max(np.diag(_matrix(kernel, a, a))) * np.max(np.diag(_matrix(kernel, b, b))))
    assert_allclose(ahead, back.T, rtol=0, atol=100 * EPS * largest)
    assert np.max(np.abs(ahead)) <= largest * (1 + 100 * EPS)  # Cauchy and Schwarz


@few
@given(kernel=KERNELS, scale=SCALES)
def test_standardised_then_unstandardised_is_the_identity(kernel, scale):
    kernel = made(kernel).bound_to(2)
    back = kernel.standardised(scale).unstandardised(scale)
    assert jax.tree.structure(back) == jax.tree.structure(kernel)
    for ours, start in zip(jax.tree.leaves(back), jax.tree.leaves(kernel), strict=True):
        assert_allclose(ours, start, rtol=0, atol=4 * EPS * 2 * np.log(1e3))  # a logarithm is added and taken off


@few
@given(kernel=KERNELS, scale=SCALES, a=POINTS, b=POINTS)
def test_a_standardised_kernel_at_standardised_points_is_the_kernel(kernel, scale, a, b):
    kernel = made(kernel)
    moved = kernel.bound_to(2).standardised(scale)
    largest = np.sqrt(np.max(np.diag(_matrix(kernel, a, a))) * np.max(np.diag(_matrix(kernel, b, b))))
    # a coordinate rounds anew and is at most 10 / 0.05 lengthscales, or 2 pi times as many periods on a circle of
    # which a lengthscale is 0.05; a hyper-parameter that was exp(log) is right to some units
    error = 100 * EPS * (10 / 0.05) * 2 * np.pi / 0.05
    assert_allclose(_matrix(moved, a / scale, b / scale), _matrix(kernel, a, b), rtol=0, atol=error * largest)


# --- divergences ------------------------------------------------------------------------------------------------------

MEANS, LOG_STDS = numbers(-10, 10, (3, 2)), numbers(-10, 3, (3, 2))


@few
@given(mean=MEANS, log_std=LOG_STDS)
def test_the_divergence_of_independent_gaussians_is_not_negative_and_equals_numpys(mean, log_std):
    with jax.enable_x64(True):
        of_units = float(UnitLatents(mean, log_std).kl())
        of_map = float(InputMap((mean,), (log_std,), activation_named("identity")).kl())
    terms = 0.5 * (np.exp(2 * log_std) + mean**2 - 1) - log_std
    rounding = 10 * EPS * np.sum(np.exp(2 * log_std) + mean**2 + 1 + np.abs(log_std))
    assert of_units >= -rounding
    assert_allclose([of_units, of_map], np.sum(terms), rtol=0, atol=rounding)


@few
@given(mean=numbers(-10, 10, 3), log_diagonal=numbers(-10, 3, 3), below=numbers(-5, 5, (3, 3)))
def test_the_divergence_of_whitened_values_is_not_negative_and_equals_the_dense_formula(mean, log_diagonal, below):
    with jax.enable_x64(True):
        ours = float(Whitened(mean, log_diagonal, below).kl())
    factor = np.tril(below, -1) + np.diag(np.exp(log_diagonal))
    trace = np.trace(factor @ factor.T) + mean @ mean
    # KL[N(m, S) || N(0, I)] = (tr S + |m|^2 - M - log |S|) / 2
    twin = 0.5 * (trace - 3 - 2 * np.sum(log_diagonal))
    rounding = 20 * EPS * (trace + 3 + np.sum(np.abs(log_diagonal)))
    assert ours >= -rounding
    assert_allclose(ours, twin, rtol=0, atol=rounding)


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


# --- scores -----------------------------------------------------------------------------------------------------------

ROWS = st.lists(st.integers(-20, 20), min_size=1, max_size=8).map(lambda values: np.array(values, np.float64))


@few
@given(inside=ROWS, outside=ROWS)
def test_auroc_is_a_share_that_turns_round_with_its_rows_and_sees_their_order_alone(inside, outside):
    found = metrics.auroc(inside, outside)
    assert 0 <= found <= 1
    assert found + metrics.auroc(outside, inside) == pytest.approx(1, abs=4 * EPS)
    assert metrics.auroc(np.exp(inside / 10) - 3, np.exp(outside / 10) - 3) == found


@few
@given(weights=numbers(0.0, 1.0, (5, 3)), y=arrays(np.int64, 5, elements=st.integers(0, 2)))
def test_scores_of_classes_stay_in_their_ranges(weights, y):
    p = (weights + 1e-3) / np.sum(weights + 1e-3, axis=1, keepdims=True)
    assert 0 <= metrics.brier(p, y) <= 2
    assert 0 <= metrics.expected_calibration_error(p, y) <= 1
    assert metrics.brier(np.eye(3)[y], y) == metrics.expected_calibration_error(np.eye(3)[y], y) == 0


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
    model = MetaGPRegressor(**{name: made(value) for name, value in configuration.items()})
    seed, problem = model._begun(*model._taken(X, Y))
    model.model_ = model._started(problem, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.metaprior"
        model.save(path)
        twin = metaprior.load(path)
    assert type(twin) is MetaGPRegressor
    assert_same(vars(twin), vars(model))


# --- tables -----------------------------------------------------------------------------------------------------------

TEXTS = st.lists(st.text(st.characters(codec="utf-8"), max_size=4), min_size=1, max_size=8)


@few
@given(column=TEXTS, shown=st.data())
def test_a_category_is_read_back_from_its_zeros_and_ones(column, shown):
    pd = pytest.importorskip("pandas")
    from metaprior.tables.columns import Category

    learned = Category.learned(pd.Series(column, dtype=object, name="c"), None)
    later = shown.draw(st.lists(st.sampled_from(column), min_size=1, max_size=5))
    encoded = learned.encoded(pd.Series(later, dtype=object, name="c"), False)
    assert_array_equal(encoded.sum(axis=1), 1)
    assert [learned.values[place] for place in np.argmax(encoded, axis=1)] == [text.strip() for text in later]


@few
@given(values=arrays(np.float64, 5, elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_come_back_from_a_table_bit_for_bit(values):
    pd = pytest.importorskip("pandas")
    from metaprior.tables import read_table, write_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        write_table(pd.DataFrame({"x": values}), path)
        found = read_table(path)["x"].to_numpy()
    assert_same(found, values)
