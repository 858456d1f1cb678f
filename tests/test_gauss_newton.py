"""Gauss-Newton steps on q(v): the closed form where there is one, never a fall where there is none."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.compilation import as_float64, in_float64
from metaprior.inference.gauss_newton import MOST_ROWS, NUM_DRAWS, gauss_newton
from metaprior.kernels import RBF
from metaprior.likelihoods import Categorical, Gaussian, Poisson, StudentT
from metaprior.mapping import Diag, Pathwise
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.noise import Noise
from small import small_metagp

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 2))


def functions(model, units, x=X):
    """The functions of every draw of the latents, v at its mean: [S, B, K]."""
    sizes = model.weights.sizes()
    shapes = ((sizes.weights,), (sizes.spectral,), (len(x), sizes.per_row))
    with in_float64():
        noise = Noise(jnp.asarray(units), *[jnp.zeros((len(units), *shape)) for shape in shapes])
        return np.asarray(_functions(as_float64(model), noise, jnp.asarray(x)))


@eqx.filter_jit
def _functions(model, noise, x):
    return model.functions(model.weights.prepared(), noise, x)


def drawn_units(model, num_rows, seed):
    """The latents' normals that `gauss_newton` draws."""
    rng = np.random.default_rng(seed)
    rng.permutation(num_rows)
    return rng.standard_normal((NUM_DRAWS, model.weights.sizes().units))


def with_mean(model, mean):
    ends = np.cumsum([m.num_inducing for m in model.weights.mappings])[:-1]
    return eqx.tree_at(lambda m: [own.mean for own in m.weights.mappings], model, np.split(mean, ends))


def mean_of(model):
    return np.concatenate([own.mean for own in model.weights.mappings])


def objective(model, units, y):
    f = functions(model, units)
    with in_float64():
        likelihood = as_float64(model.likelihood)
        found = np.asarray(likelihood.log_prob(jnp.asarray(f), jnp.broadcast_to(y, (len(f), *y.shape))))
    return found.sum(axis=1).mean() - 0.5 * np.sum(mean_of(model) ** 2)


@pytest.mark.parametrize("local", [False, True], ids=["global", "local"])
def test_a_linear_network_with_gaussian_noise_has_the_posterior_of_linear_regression(local):
    """f = J v for every draw of z: m = H^-1 J'y / s^2 with H = I + J'J / s^2, J over all draws, each counting 1/S."""
    network, noise = Dense((2, 1)), 0.3
    kernel = RBF(0.8).bound_to(2) if local else None
    weights = small_metagp(Pathwise(32), network.sizes, input_kernel=kernel)
    model = Model(weights, network, Gaussian(np.full(1, np.log(noise))))
    y = RNG.standard_normal((12, 1))
    units, start = drawn_units(model, 12, 7), mean_of(model)
    columns = [functions(with_mean(model, unit), units).ravel() for unit in np.eye(len(start))]
    j = np.array(columns).T / np.sqrt(NUM_DRAWS)
    h = np.eye(len(start)) + j.T @ j / noise**2
    expected = np.linalg.solve(h, j.T @ np.tile(y.ravel(), NUM_DRAWS) / np.sqrt(NUM_DRAWS)) / noise**2
    found = gauss_newton(model, X, y, 12, 7)
    np.testing.assert_allclose(mean_of(found), expected, rtol=1e-6, atol=1e-8)
    factor = np.asarray(found.weights.mappings[0].factor)
    np.testing.assert_allclose(factor @ factor.T, np.linalg.inv(h), rtol=1e-5, atol=1e-7)


LIKELIHOODS = {
    "gaussian": (lambda: Gaussian(np.full(1, np.log(0.2))), 1, lambda: RNG.standard_normal((12, 1))),
    "student_t": (lambda: StudentT(np.zeros(1), np.zeros(())), 1, lambda: RNG.standard_normal((12, 1))),
    "classes": (Categorical, 3, lambda: RNG.integers(0, 3, (12, 1)).astype(float)),
    "counts": (Poisson, 1, lambda: RNG.poisson(2.0, (12, 1)).astype(float)),
}


@pytest.mark.parametrize(
    ("name", "conditional", "mapping"),
    [
        ("gaussian", Pathwise(32), "layer"),
        ("student_t", Diag(), "global"),
        ("classes", Pathwise(32), "global"),
        ("counts", Diag(), "layer"),
    ],
)
def test_no_step_lowers_the_objective_and_the_last_ones_find_its_top(name, conditional, mapping):
    make, outputs, targets = LIKELIHOODS[name]
    network, y = Dense((2, 3, outputs)), targets()
    model = Model(small_metagp(conditional, network.sizes, mapping=mapping), network, make())
    units = drawn_units(model, 12, 3)
    values = [objective(gauss_newton(model, X, y, steps, 3), units, y) for steps in (0, 1, 2, 4, 8, 60)]
    assert np.all(np.diff(values) >= -1e-9)
    assert values[-1] > values[0] + 1
    # at the top no direction leads up
    best = gauss_newton(model, X, y, 60, 3)
    around = [with_mean(best, mean_of(best) + 0.03 * RNG.standard_normal(len(mean_of(best)))) for _ in range(10)]
    assert max(objective(other, units, y) for other in around) < values[-1] + 1e-6


def test_nothing_but_q_of_v_moves():
    network = Dense((2, 3, 1))
    model = Model(small_metagp(Pathwise(32), network.sizes), network, Gaussian(np.full(1, -1.0)))
    found = gauss_newton(model, X, RNG.standard_normal((12, 1)), 3, 0)

    def rest(tree):
        return eqx.tree_at(
            lambda m: [leaf for own in m.weights.mappings for leaf in (own.mean, own.log_diagonal, own.below_diagonal)],
            tree,
            [0, 0, 0],
        )

    assert not np.array_equal(mean_of(found), mean_of(model))
    same = jax.tree.map(lambda a, b: np.array_equal(a, b), rest(found), rest(model))
    assert all(jax.tree.leaves(same))


def test_of_many_rows_some_are_taken_and_count_for_all():
    """Every row twice: one half of them, with twice the weight, says nearly what both do."""
    network = Dense((1, 1))
    weights = small_metagp(Pathwise(32), network.sizes)
    model = Model(weights, network, Gaussian(np.full(1, 0.0)))
    x = RNG.standard_normal((2 * MOST_ROWS, 1))
    y = 0.5 * x + RNG.standard_normal(x.shape)
    found = gauss_newton(model, x, y, 10, 0).weights.mappings[0]
    part = gauss_newton(model, x[:MOST_ROWS], y[:MOST_ROWS], 10, 0).weights.mappings[0]
    # the data that count double leave half the variance in the direction they speak of
    spread, wide = (np.linalg.svd(np.asarray(m.factor), compute_uv=False)[-1] for m in (found, part))
    assert spread / wide == pytest.approx(np.sqrt(0.5), rel=0.05)


def test_numbers_that_are_not_finite_leave_the_model_as_it_was():
    network = Dense((2, 3, 1))
    model = Model(small_metagp(Pathwise(32), network.sizes), network, Gaussian(np.full(1, -1.0)))
    assert gauss_newton(model, X, np.full((12, 1), np.nan), 3, 0) is model
