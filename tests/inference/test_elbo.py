"""The ELBO: its terms, its batches, its draws, and that with `full` it lies below the exact evidence."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dense import layer_places, posterior, prior_covariance
from metaprior.inference import Batch, elbo, elbo_terms, make_data
from metaprior.inference.data import choose_batch
from metaprior.kernels import RBF
from metaprior.latents import UnitLatents
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.random import StandardNormals, draw_normals, make_key
from metaprior.weight_gp import Conditional, Diag, Full, Pathwise
from metaprior.weights import MetaGP
from small import inputs, small_metagp, with_sparse_gps

LOCAL = {"input_kernel": RBF(0.8)}

pytestmark = pytest.mark.usefixtures("double")


def _model(conditional: Conditional, **options) -> Model:
    weights = small_metagp(conditional, (1, 3, 1), n_inducing=4, **options)
    return Model(weights, Dense((1, 3, 1)), Gaussian(np.log(np.full(1, 0.5))))


def _data(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.asarray(inputs(num_rows, 1))
    return x, np.sin(2 * x)


def _batch(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> Batch:
    return Batch(jnp.asarray(x), jnp.asarray(y), jnp.asarray(np.ones(len(x)) if weight is None else weight))


@eqx.filter_jit
def _terms(model: Model, normals: StandardNormals, batch: Batch) -> dict:
    return elbo_terms(model, normals, batch)[0]


# --- terms ------------------------------------------------------------------------------------------------------------


def test_elbo_is_log_likelihood_less_the_weighted_sum_of_the_kls():
    terms = {"log_likelihood": jnp.asarray(-3.0), "kl_z": jnp.asarray(2.0), "kl_u": jnp.asarray(0.5)}
    assert elbo(terms) == -5.5
    assert elbo(terms, 0.2) == -3.5
    assert elbo(terms, 0.0) == -3.0


def test_terms_are_the_weighted_mean_log_density_and_the_models_kls():
    model, (x, y) = _model(Pathwise(4), **LOCAL), _data(5)
    noise = draw_normals(make_key(0), model.weights.sizes(), 5, 3, dtype=jnp.float64)
    weight = np.array([1.0, 2.0, 0.0, 1.0, 0.5])
    terms = _terms(model, noise, _batch(x, y, weight))
    f = eqx.filter_jit(lambda m: m.functions(m.weights.prepared(), noise, jnp.asarray(x)))(model)
    log_density = -0.5 * ((y - np.asarray(f)) / 0.5) ** 2 - np.log(0.5) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(terms["log_likelihood"], log_density[..., 0].mean(axis=0) @ weight, rtol=1e-12)
    assert {name: float(v) for name, v in terms.items() if name != "log_likelihood"} == {
        name: float(v) for name, v in model.weights.kl().items()
    }


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conditional", [Diag(), Full()], ids=["diag", "full"])
def test_padded_rows_weigh_nothing(conditional):
    """`diag` draws every row for itself, `full` all rows of a call jointly."""
    model, (x, y) = _model(conditional, **LOCAL), _data(5)
    noise = draw_normals(make_key(0), model.weights.sizes(), 8, 2, dtype=jnp.float64)
    padded = _batch(np.pad(x, ((0, 3), (0, 0))), np.pad(y, ((0, 3), (0, 0))), np.repeat([1.0, 0.0], [5, 3]))
    without = _terms(model, dataclasses.replace(noise, rows=noise.rows[:, :5]), _batch(x, y))
    np.testing.assert_allclose(elbo(_terms(model, noise, padded)), elbo(without), rtol=1e-10)


def test_nonsense_in_padded_rows_stays_out_of_the_elbo_and_its_derivatives():
    model, (x, y) = _model(Diag()), _data(5)
    noise = draw_normals(make_key(0), model.weights.sizes(), 5, 2, dtype=jnp.float64)
    weight = np.array([1.0, 1.0, 1.0, 0.0, 0.0])

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def value(m: Model, batch: Batch) -> jax.Array:
        return elbo(elbo_terms(m, noise, batch)[0])

    nonsense = np.where(weight[:, None] > 0, y, np.nan)
    found, expected = (jax.tree.leaves(value(model, _batch(x, rows, weight))) for rows in (nonsense, y))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_batch_elbo_is_unbiased_for_the_whole():
    """Weighted and padded data; noise drawn afresh with every batch."""
    model, (x, y) = _model(Diag()), _data(20)
    data = jax.tree.map(jnp.asarray, make_data(x, y, weight=np.linspace(0.2, 2.0, 20), dtype=np.float64))
    sizes = model.weights.sizes()

    @eqx.filter_jit
    def values(m: Model, keys: jax.Array, batch_size: int | None) -> jax.Array:
        def one(key: jax.Array) -> jax.Array:
            batch = choose_batch(jax.random.fold_in(key, 1), data, batch_size)
            return elbo(elbo_terms(m, draw_normals(key, sizes, len(batch.x), 1, dtype=jnp.float64), batch)[0])

        return jax.lax.map(one, keys)

    keys = jax.random.split(jax.random.key(0), 4000)
    whole, batches = values(model, keys, None), values(model, keys, 6)
    error = np.sqrt((np.var(whole) + np.var(batches)) / 4000)
    assert np.std(batches) > 1.2 * np.std(whole)  # batches differ
    assert abs(np.mean(batches) - np.mean(whole)) < 4 * error


# --- draws ------------------------------------------------------------------------------------------------------------


def test_latent_and_weight_draws_change_the_spread_and_not_the_expectation():
    model, (x, y) = _model(Pathwise(4)), _data(6)
    sizes, batch = model.weights.sizes(), _batch(x, y)

    @eqx.filter_jit
    def values(m: Model, keys: jax.Array, num_latent: int, num_weight: int) -> jax.Array:
        def one(key: jax.Array) -> jax.Array:
            return elbo(elbo_terms(m, draw_normals(key, sizes, 6, num_latent, num_weight, jnp.float64), batch)[0])

        return jax.lax.map(one, keys)

    keys = jax.random.split(jax.random.key(0), 2000)
    one, several = (np.asarray(values(model, keys, *draws)) for draws in [(1, 1), (2, 3)])
    error = np.sqrt((np.var(one) + np.var(several)) / 2000)
    assert abs(np.mean(several) - np.mean(one)) < 4 * error
    assert np.std(several) < np.std(one)


@pytest.mark.parametrize("conditional", [Diag(), Pathwise(4)], ids=["diag", "pathwise"])
def test_temperature_zero_gives_the_mean_weights_function_in_every_draw(conditional):
    model, (x, _) = _model(conditional, **LOCAL), _data(5)
    noise = draw_normals(make_key(0), model.weights.sizes(), 5, 3, dtype=jnp.float64).tempered(0.0)
    f = eqx.filter_jit(lambda m: m.functions(m.weights.prepared(), noise, jnp.asarray(x)))(model)
    mean = posterior("full", model.weights, model.weights.latents.mean, x).mean
    first, second = (mean[place] for place in layer_places(model.weights, 5))
    ones = np.ones((5, 1))
    hidden = np.tanh(np.einsum("ni,nij->nj", np.concatenate([x, ones], axis=1), first))
    expected = np.einsum("ni,nij->nj", np.concatenate([hidden, ones], axis=1), second)
    np.testing.assert_allclose(f, np.broadcast_to(expected, (3, 5, 1)), rtol=1e-10, atol=1e-10)


# --- the bound --------------------------------------------------------------------------------------------------------

NOISE_STD = 0.5
X = np.array([[-1.0], [0.2], [1.3]])
Y = np.array([[0.8], [1.4], [1.5]])  # near the function whose four weights are all 0.8


def _tiny() -> Model:
    """1-1-1, five units and four weights, alike under the prior: long lengthscales, equal scales."""
    weights = small_metagp(Full(jitter=1e-12), (1, 1, 1), n_inducing=6, weight_std=0.05, jitter=1e-9)
    kernel = RBF([6.0, 6.0])
    weights = with_sparse_gps(weights, lambda m: dataclasses.replace(m, kernel_in=kernel, kernel_out=kernel))
    weights = dataclasses.replace(weights, log_scale=np.zeros((2, 2)))
    return Model(weights, Dense((1, 1, 1)), Gaussian(np.log(np.full(1, NOISE_STD))))


def _at_the_prior(model: Model) -> Model:
    units = UnitLatents(np.zeros((5, 2)), np.zeros((5, 2)))
    plain = {"mean": np.zeros(6), "log_diagonal": np.zeros(6), "below_diagonal": np.zeros((6, 6))}
    weights = with_sparse_gps(model.weights, lambda m: dataclasses.replace(m, **plain))
    return eqx.tree_at(lambda m: m.weights, model, dataclasses.replace(weights, latents=units))


def _brute_force(weights: MetaGP, num_latent: int = 20_000, num_weight: int = 50) -> np.ndarray:
    """log p(y | w) for w from the prior, [num_latent, num_weight]: z, then four weights from their dense covariance."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((num_latent, 5, 2))
    length_in, length_out = (
        np.exp(k.log_lengthscale) for k in (weights.sparse_gps[0].kernel_in, weights.sparse_gps[0].kernel_out)
    )
    z_in, z_out = z[:, [0, 1, 2, 3]], z[:, [2, 2, 4, 4]]  # input, its bias -> hidden; hidden, its bias -> output

    def rbf(a: np.ndarray, length: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * np.sum(((a[:, :, None] - a[:, None]) / length) ** 2, axis=-1))

    covariance = rbf(z_in, length_in) * rbf(z_out, length_out) + np.exp(2 * weights.weight_noise.log_std) * np.eye(4)
    np.testing.assert_allclose(covariance[0], prior_covariance(weights, z[0]), rtol=1e-12)
    w = np.einsum("sab,sbj->saj", np.linalg.cholesky(covariance), rng.standard_normal((num_latent, 4, num_weight)))
    w = w[:, :, :, None]
    f = np.tanh(w[:, 0] * X[:, 0] + w[:, 1]) * w[:, 2] + w[:, 3]
    log_density = -0.5 * ((Y[:, 0] - f) / NOISE_STD) ** 2 - np.log(NOISE_STD) - 0.5 * np.log(2 * np.pi)
    return log_density.sum(axis=-1)


@pytest.fixture(scope="module")
def log_likelihoods() -> np.ndarray:
    return _brute_force(_tiny().weights)


def _evidence(log_likelihoods: np.ndarray) -> tuple[float, float]:
    """log of the mean likelihood and its standard error; draws of one z are one observation."""
    means = np.exp(log_likelihoods).mean(axis=1)
    return np.log(means.mean()), means.std() / np.sqrt(len(means)) / means.mean()


@eqx.filter_jit
def _elbo_values(model: Model, key: jax.Array) -> jax.Array:
    """One ELBO a draw."""
    noise = draw_normals(key, model.weights.sizes(), 3, 20_000, dtype=jnp.float64)
    f = model.functions(model.weights.prepared(), noise, jnp.asarray(X))
    log_prob = jnp.sum(model.likelihood.log_prob(f, jnp.broadcast_to(jnp.asarray(Y), f.shape)), axis=-1)
    return log_prob - sum(model.weights.kl().values())


def _elbo_and_error(model: Model) -> tuple[float, float]:
    values = np.asarray(_elbo_values(model, make_key(5)))
    return values.mean(), values.std() / np.sqrt(len(values))


def _leaves_of_q(model: Model) -> list:
    units, (sparse_gp,) = model.weights.latents, model.weights.sparse_gps
    return [units.mean, units.log_std, sparse_gp.mean, sparse_gp.log_diagonal, sparse_gp.below_diagonal]


@eqx.filter_jit
def _trained(model: Model) -> Model:
    """q fitted to the ELBO, hyper-parameters as they are."""
    fixed = jax.tree.map(lambda _: False, model)
    q, rest = eqx.partition(model, eqx.tree_at(_leaves_of_q, fixed, [True] * 5))
    batch, optimizer = _batch(X, Y), optax.adam(0.03)

    def step(state: tuple, key: jax.Array) -> tuple:
        q, optimizer_state = state
        noise = draw_normals(key, model.weights.sizes(), 3, 16, dtype=jnp.float64)
        grads = jax.grad(lambda q: -elbo(elbo_terms(eqx.combine(q, rest), noise, batch)[0]))(q)
        direction, optimizer_state = optimizer.update(grads, optimizer_state)
        return (eqx.apply_updates(q, direction), optimizer_state), None

    q = jax.tree.map(jnp.asarray, q)
    keys = jax.random.split(jax.random.key(3), 1000)
    return eqx.combine(jax.lax.scan(step, (q, optimizer.init(q)), keys)[0][0], rest)


def test_at_the_prior_the_elbo_is_the_expected_log_likelihood(log_likelihoods):
    model = _at_the_prior(_tiny())
    assert all(float(value) == 0 for value in model.weights.kl().values())
    value, error = _elbo_and_error(model)
    by_z = log_likelihoods.mean(axis=1)
    assert abs(value - by_z.mean()) < 4 * np.hypot(error, by_z.std() / np.sqrt(len(by_z)))


def test_full_elbo_is_below_the_exact_evidence(log_likelihoods):
    evidence, evidence_error = _evidence(log_likelihoods)
    prior = _at_the_prior(_tiny())
    trained = _trained(prior)
    bounds = [_elbo_and_error(model) for model in (prior, _tiny(), trained)]
    for value, error in bounds:
        assert value < evidence + 4 * np.hypot(error, evidence_error)
    # the trained bound is so near that without the KL of q(v) it would be none
    value, error = bounds[-1]
    assert value + float(trained.weights.kl()["kl_u"]) > evidence + 4 * np.hypot(error, evidence_error)


def test_weights_of_the_tiny_network_are_those_of_the_brute_force():
    """The dense twin that the evidence leans on has the marginal of `full` at the prior."""
    model = _at_the_prior(_tiny()).weights
    z = np.random.default_rng(4).standard_normal((5, 2))
    dense = posterior("full", dataclasses.replace(model, latents=UnitLatents(z, np.zeros((5, 2)))), z)
    np.testing.assert_allclose(dense.covariance, prior_covariance(model, z), atol=1e-6)
