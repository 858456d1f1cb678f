"""Log weights of draws of q: against dense densities, and their mean against the ELBO."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from metaprior import MetaGPRegressor, kernels
from metaprior.compilation import as_float64, in_float64
from metaprior.inference import elbo, elbo_terms
from metaprior.inference.importance import log_density_of_normals, log_ratio, log_weight, num_numbers, predicting
from metaprior.networks import Dense
from metaprior.output_layer import FunctionGP
from metaprior.random import StandardNormals, draw_normals, make_key
from metaprior.weights import Point, metagp_of

X = np.random.default_rng(0).uniform(-1, 1, (16, 2))
Y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(16)

#: Settings that between them have every kind of number below an integrated output layer.
SETTINGS = {
    "a GP for each layer": {"uncertain_hypers": False, "hidden_layer_sizes": (40,)},
    "one GP for all layers, and uncertain hyper-parameters": {"weight_gp": "shared", "uncertain_hypers": True},
    "a projection and a mean-field layer": {
        "input_kernel": "rbf",
        "input_projection": 1,
        "hidden_layer_sizes": (2, 2),
        "mean_field_layers": (0,),
    },
}


def fitted(**settings):
    model = MetaGPRegressor(**{"hidden_layer_sizes": (3,), "max_iter": 15, "random_state": 0} | settings).fit(X, Y)
    return model.model_


def draws(model, num_draws, seed=0):
    return draw_normals(make_key(seed), model.sizes(), len(model.output.rows.value.x), num_draws, dtype=jnp.float64)


@pytest.mark.parametrize(
    "name", [next(iter(SETTINGS)), *[pytest.param(name, marks=pytest.mark.slow) for name in list(SETTINGS)[1:]]]
)
def test_the_mean_log_weight_is_the_elbo(name):
    with in_float64():
        model = as_float64(predicting(fitted(**SETTINGS[name])))
        batch, normals = as_float64(model.output.rows.value), draws(model, 1000)
        logs = np.asarray(jax.jit(lambda n: jax.lax.map(lambda own: log_weight(model, own, batch), n))(normals))
        terms, _ = jax.jit(lambda n: elbo_terms(model, n, batch))(draws(model, 1000, seed=1))
        expected = float(elbo(terms))
    # both are means over draws; the log weights vary more, as the KL is not computed but drawn
    assert logs.mean() == pytest.approx(expected, abs=5 * logs.std() / np.sqrt(len(logs)))
    assert np.all(np.isfinite(logs))


def dense_log_weight(model, normals, batch):
    """log p(y | x) + log p(z, u) - log q(z, u) of a model without hyper-parameters to draw, from dense Gaussians."""
    weights = metagp_of(model.weights)
    draw = weights.prepared().draw(normals)
    inner, _ = model.output.bound(FunctionGP.of(draw, model.network), model.likelihood, batch, normals.rows)
    latents, z = weights.latents, np.asarray(draw.z)
    total = float(inner) + norm.logpdf(z).sum() - norm.logpdf(z, latents.mean, np.exp(latents.log_std)).sum()
    for sparse_gp, own in zip(weights.sparse_gps, draw.own, strict=True):
        gram = np.asarray(sparse_gp.gram(draw.z, None, weights.weight_noise))
        if own.inverse_root is not None:  # a factor of the whole matrix takes jitter
            gram = gram + weights.start_jitter * np.mean(np.diag(gram)) * np.eye(len(gram))
        factor = np.diag(np.exp(np.asarray(sparse_gp.log_diagonal)))
        if sparse_gp.below_diagonal is not None:
            factor = factor + np.tril(np.asarray(sparse_gp.below_diagonal), -1)
        u = np.asarray(own.values)
        total += multivariate_normal.logpdf(u, np.zeros(len(u)), gram, allow_singular=True)
        total -= multivariate_normal.logpdf(u, np.asarray(sparse_gp.mean), factor @ factor.T, allow_singular=True)
    return total - float(sum(weights.kl_of_points().values()))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"hidden_layer_sizes": (40,)}, {"weight_gp": "shared"}])
def test_the_log_weight_of_a_draw_is_that_of_dense_gaussians(settings):
    with in_float64():
        model = as_float64(predicting(fitted(uncertain_hypers=False, **settings)))
        batch = as_float64(model.output.rows.value)
        for own in range(2):
            normals = jax.tree.map(lambda leaf, own=own: leaf[own], draws(model, 2))
            found = float(log_weight(model, normals, batch))
            assert found == pytest.approx(dense_log_weight(model, normals, batch), rel=1e-6, abs=1e-4)


def test_the_density_of_the_normals_is_the_weight_times_that_of_q():
    with in_float64():
        model = as_float64(predicting(fitted(uncertain_hypers=True, input_kernel=kernels.RBF())))
        batch = as_float64(model.output.rows.value)
        normals = jax.tree.map(lambda leaf: leaf[0], draws(model, 1))
        squares = sum(float(jnp.sum(part**2)) for part in (normals.latents, normals.weights, normals.spectral))
        found = float(log_density_of_normals(model, normals, batch)) - float(log_weight(model, normals, batch))
        assert found == pytest.approx(-0.5 * squares)
        assert num_numbers(model) == sum(np.size(p) for p in (normals.latents, normals.weights, normals.spectral))


def test_weights_of_another_kind_are_refused():
    point = Point.initial(Dense((1, 2, 1)), np.random.default_rng(0), 1.0)
    none = StandardNormals(jnp.zeros(0), jnp.zeros(0), jnp.zeros(0), jnp.zeros((0, 0)))
    with pytest.raises(ValueError, match="expected MetaGP or mean-field weights; got Point"):
        log_ratio(point, point.prepared().draw(none), none)
