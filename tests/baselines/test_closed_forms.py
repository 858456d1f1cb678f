"""Every baseline against a closed form or an independent computation of the same thing."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from linear_data import NOISE, X, Y, outputs_of
from metaprior import kernels
from metaprior.baselines import DKLRegressor, EnsembleRegressor, HMCRegressor, MAPRegressor, MFVIRegressor
from metaprior.baselines.ensemble import member_of
from metaprior.baselines.hmc import jitter_of_each
from metaprior.inference import ConvergenceTrouble, report_jitter
from metaprior.inference.elbo import Batch
from metaprior.inference.nuts import log_joint
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.random import StandardNormals
from metaprior.weights import DeepKernel, HierarchicalMetaGP, MeanField, MetaNN, Point

pytestmark = pytest.mark.usefixtures("double")


def linear_posterior(model) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of (weights, bias) of y = w x + b, N(0, 1) prior, in the model's own units."""
    design = np.column_stack([(X - model.x_offset_) / model.x_scale_, np.ones(len(X))])
    targets, noise = (Y - model.y_offset_) / model.y_scale_, NOISE / model.y_scale_
    precision = np.eye(3) + design.T @ design / noise**2
    covariance = np.linalg.inv(precision)
    return covariance @ design.T @ targets / noise**2, covariance


# --- point weights ----------------------------------------------------------------


def test_map_of_a_linear_model_is_the_posterior_mean():
    model = MAPRegressor((), noise=NOISE, prior_scale=1.0, dtype="float64", random_state=0).fit(X, Y)
    mean, covariance = linear_posterior(model)
    error = (model.model_.weights.values[0][:, 0] - mean) / np.sqrt(np.diag(covariance))
    assert np.abs(error).max() < 1e-3


def test_the_log_joint_of_point_weights_is_that_of_scipy():
    network, likelihood = Dense((2, 3, 1)), Gaussian(np.log([0.3]))
    model = Model(Point.initial(network, np.random.default_rng(0), 0.7), network, likelihood)
    first, second = (np.asarray(w) for w in model.weights.values)
    hidden = np.tanh(np.column_stack([X, np.ones(40)]) @ first)
    f = np.column_stack([hidden, np.ones(40)]) @ second
    expected = stats.norm(f[:, 0], 0.3).logpdf(Y).sum() + stats.halfnorm.logpdf(0.3) + np.log(0.3)
    expected += sum(stats.norm(0, 0.7).logpdf(w).sum() for w in (first, second))
    batch = Batch(jnp.asarray(X), jnp.asarray(Y[:, None]), jnp.ones(40))
    assert_allclose(log_joint(model, batch), expected, rtol=1e-12)


def test_an_ensemble_is_the_mixture_of_its_members():
    model = EnsembleRegressor((4,), max_iter=50, n_members=3, random_state=0).fit(X, Y)
    members = [member_of(model.model_, index) for index in range(3)]
    x = (X - model.x_offset_) / model.x_scale_
    f = np.stack([outputs_of(m, x) for m in members])
    noise = np.array([np.exp(m.likelihood.log_noise[0]) for m in members], np.float64)
    density = stats.norm(f, noise[:, None]).pdf((Y - model.y_offset_) / model.y_scale_)
    found = model.predict_distribution(X)
    assert_allclose(found.mean, model.y_offset_ + model.y_scale_ * f.mean(0), rtol=1e-6)
    assert_allclose(found.log_prob(Y), np.log(density.mean(0)) - np.log(model.y_scale_), rtol=1e-5)
    assert_allclose(found.aleatoric_variance, np.full(40, np.mean(noise**2) * model.y_scale_[0] ** 2), rtol=1e-6)


# --- mean field -------------------------------------------------------------------


def _noise(sizes, rows, seed=0):
    rng = np.random.default_rng(seed)
    return StandardNormals(
        *[jnp.asarray(rng.standard_normal(n)) for n in (sizes.latents, sizes.weights, sizes.spectral)],
        jnp.asarray(rng.standard_normal((rows, sizes.per_row))),
    )


def test_pre_activations_have_the_moments_of_their_weights():
    """h W with independent weights: mean h M, variance h^2 S^2, against 20,000 draws of explicit weights."""
    rng = np.random.default_rng(1)
    mean, log_std = rng.standard_normal((3, 2)), 0.5 * rng.standard_normal((3, 2))
    by_row, h = MeanField((mean,), (log_std,)), rng.standard_normal((5, 3))
    layer = by_row.prepared().draw(_noise(by_row.sizes(), 5)).at(jnp.zeros((5, 2)), jnp.zeros((5, 2)))[0]
    up = by_row.prepared().draw(_noise(by_row.sizes(), 5)).at(jnp.zeros((5, 2)), jnp.ones((5, 2)))[0]
    weights = mean + np.exp(log_std) * rng.standard_normal((20_000, 3, 2))
    products = h @ weights
    error = products.std(0) / np.sqrt(20_000)
    assert np.all(np.abs(np.asarray(layer(h)) - products.mean(0)) < 5 * error)
    found = np.asarray(up(h) - layer(h))
    assert np.all(np.abs(found / products.std(0) - 1) < 5 / np.sqrt(2 * 20_000))


@pytest.mark.slow
def test_mean_field_of_a_linear_model_is_its_closed_form():
    """The best factorised Gaussian has the posterior's mean and variances 1 / precision_ii."""
    model = MFVIRegressor((), noise=NOISE, dtype="float64", max_iter=6000, n_train_draws=16, random_state=0).fit(X, Y)
    mean, covariance = linear_posterior(model)
    std = 1 / np.sqrt(np.diag(np.linalg.inv(covariance)))
    weights = model.model_.weights
    assert np.all(np.abs(weights.means[0][:, 0] - mean) < 0.05 * std)
    assert_allclose(np.exp(weights.log_stds[0][:, 0]), std, rtol=0.03)


def test_mean_field_kl_is_the_sum_of_gaussian_kls():
    rng = np.random.default_rng(2)
    mean, log_std, scale = rng.standard_normal((4, 3)), 0.3 * rng.standard_normal((4, 3)), 1.7
    variance = np.exp(2 * log_std)
    expected = 0.5 * np.sum((variance + mean**2) / scale**2 - 1 - np.log(variance / scale**2))
    assert_allclose(MeanField((mean,), (log_std,), scale).kl()["kl_w"], expected, rtol=1e-12)


# --- MetaNN -----------------------------------------------------------------------


@pytest.mark.parametrize("implicit", [False, True])
def test_metann_weights_are_its_mapping_at_every_code(implicit):
    network = Dense((2, 3, 1))
    model = MetaNN.initial(network, 2, 5, np.random.default_rng(0), implicit=implicit)
    model = eqx.tree_at(lambda m: m.to_log_std, model, np.linspace(-1, 1, 5))
    noise = _noise(model.sizes(), 1)
    weights = model.prepared().draw(noise).weights(jnp.zeros((1, 2)), jnp.zeros((1, 0)))
    z = np.asarray(model.latents.draw(noise.latents))
    own = iter(np.asarray(noise.weights))
    for layer, weight_layer in enumerate(network.weight_layers):
        for i, unit_in in enumerate(weight_layer.inputs):
            scale = np.exp(model.log_scale[layer][0 if i < len(weight_layer.inputs) - 1 else 1])
            for j, unit_out in enumerate(weight_layer.outputs):
                e = next(own)
                before = z[unit_in] @ model.from_input + z[unit_out] @ model.from_output + model.hidden_bias
                hidden = np.tanh(before + implicit * e * model.from_normals)
                spread = 0 if implicit else np.exp(model.log_std + hidden @ model.to_log_std)
                assert_allclose(weights[layer][i, j], scale * (hidden @ model.to_mean + spread * e), rtol=1e-10)


# --- DKL --------------------------------------------------------------------------


def sparse_gp(model, x_new):
    """Return mean and variance of the best q(u) (Titsias 2009) at a fitted model's own hyper-parameters, dense."""
    gp = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64)[0], model.model_.weights.gps)
    lengthscale, variance = np.exp(gp.kernel.log_lengthscale), np.exp(2 * gp.log_scale)
    noise = np.exp(model.model_.likelihood.log_noise[0])
    x, z = (X - model.x_offset_) / model.x_scale_, gp.points
    new, y = (x_new - model.x_offset_) / model.x_scale_, (Y - model.y_offset_) / model.y_scale_

    def k(a, b):
        return variance * np.exp(-0.5 * np.sum(((a[:, None] - b[None]) / lengthscale) ** 2, axis=-1))

    kuu = k(z, z) + model.model_.weights.start_jitter * variance * np.eye(len(z))
    inner = np.linalg.inv(kuu + k(z, x) @ k(x, z) / noise**2)
    mean = k(new, z) @ inner @ k(z, x) @ y / noise**2
    spread = variance - np.sum(k(new, z) @ (np.linalg.inv(kuu) - inner) * k(new, z), axis=1)
    q = k(x, z) @ np.linalg.solve(kuu, k(z, x))
    bound = stats.multivariate_normal(np.zeros(len(y)), q + noise**2 * np.eye(len(y)), allow_singular=True).logpdf(y)
    return mean, spread, bound - (variance * len(y) - np.trace(q)) / (2 * noise**2)


@pytest.mark.slow
def test_dkl_with_identity_features_is_a_sparse_gp():
    model = DKLRegressor(
        (), n_inducing=12, dtype="float64", max_iter=6000, n_train_draws=16, n_predict_draws=2000, random_state=0
    ).fit(X, Y)
    new = np.random.default_rng(5).uniform(-2, 2, (30, 2))
    mean, spread, bound = sparse_gp(model, new)
    predicted = model.predict_distribution(new)
    found = (predicted.mean - model.y_offset_) / model.y_scale_
    sampling = np.sqrt(spread / 2000)
    assert np.all(np.abs(found - mean) < 4 * sampling + 0.05 * np.sqrt(spread))
    assert_allclose(predicted.epistemic_variance / model.y_scale_**2, spread, rtol=0.05 + 4 * np.sqrt(2 / 2000))
    last = model.elbo_history_[-200:]
    assert abs(last.mean() - bound) < 0.5 + 4 * last.std() / np.sqrt(200)


def test_a_deep_kernels_draws_have_its_moments_alone_and_together():
    network, rng = Dense((2, 3, 2)), np.random.default_rng(3)
    model = DeepKernel.initial(network, kernels.RBF(), 6, X, rng, jitter=1e-8)
    together, num = model.for_prediction(), 40_000
    x = jnp.asarray(X[:4])

    def draws(weights):
        prepared = weights.prepared()
        normals = jnp.asarray(rng.standard_normal((num, 4, 2)))

        def one(rows):
            return network(prepared.draw(_noise(weights.sizes(), 4)).at(x, rows), x)

        return np.asarray(jax.jit(jax.vmap(one))(normals))

    alone, joint = draws(model), draws(together)
    assert_allclose(alone.std(0), joint.std(0), rtol=5 / np.sqrt(num))
    assert np.all(np.abs(alone.mean(0) - joint.mean(0)) < 6 * joint.std(0) / np.sqrt(num))
    assert np.abs(np.corrcoef(alone[:, :, 0].T)[0, 1]) < 5 / np.sqrt(num)
    assert np.abs(np.corrcoef(joint[:, :, 0].T)[np.triu_indices(4, 1)]).max() > 0.2  # neighbours move together


# --- the sampler ------------------------------------------------------------------


def test_the_prior_of_the_hierarchical_model_has_the_covariance_of_its_kernel():
    """With z and hyper-parameters held, w = s (L v + sigma e): its covariance over v, e is s s' (K + sigma^2 I)."""
    network, rng = Dense((1, 2, 1)), np.random.default_rng(0)
    model = HierarchicalMetaGP.initial(network, 2, kernels.RBF(), None, X, rng)
    prepared, scales = model.prepared(), np.asarray(model.scales())
    rows = [(i, j) for w in network.weight_layers for i in w.inputs for j in w.outputs]
    z = np.asarray(model.z)

    def k(a, b):
        return np.exp(-0.5 * np.sum((z[a] - z[b]) ** 2))

    gram = np.array([[k(i, p) * k(j, q) for p, q in rows] for i, j in rows])
    factor = np.asarray(prepared.factor)
    assert_allclose(factor @ factor.T, gram, atol=1e-5)
    weights = prepared.draw(_noise(model.sizes(), 1)).weights(jnp.zeros((1, 1)), jnp.zeros((1, 0)))
    flat = np.concatenate([np.asarray(w).ravel() for w in weights])
    sigma = np.exp(model.log_weight_noise)
    assert_allclose(flat, scales * (factor @ model.values[:, 0] + sigma * model.noise_normals), rtol=1e-9)


def test_jitter_beyond_the_usual_is_found_in_every_sample_and_told():
    """In float32 two hundred inputs within two lengthscales have no factor with the usual jitter."""
    x = np.linspace(-1, 1, 200)[:, None]
    parts = (Dense((1, 2, 1)), 2, kernels.RBF())
    near, apart = (
        HierarchicalMetaGP.initial(*parts, kernels.RBF(own).bound_to(1), x, np.random.default_rng(0))
        for own in (1.0, 1e-4)
    )
    both = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf, jnp.float32) for leaf in leaves]), apart, near)
    used = np.asarray(jitter_of_each(both))
    assert used[0] == pytest.approx(apart.start_jitter)
    assert used[1] > 1.5 * near.start_jitter
    with pytest.warns(ConvergenceTrouble, match="a relative jitter of .* codes or inputs may coincide"):
        report_jitter(near, float(used.max()))
    report_jitter(apart, float(used[0]))


def test_the_local_hierarchical_model_takes_its_own_values_at_the_data():
    network, rng, x = Dense((1, 2, 1)), np.random.default_rng(0), np.linspace(-2, 2, 5)[:, None]
    model = HierarchicalMetaGP.initial(network, 2, kernels.RBF(), kernels.RBF(0.7).bound_to(1), x, rng)
    prepared = model.prepared()
    weights = prepared.draw(_noise(model.sizes(), 5)).weights(jnp.asarray(x), jnp.zeros((5, 0)))
    flat = np.concatenate([np.moveaxis(np.asarray(w), 0, -1).reshape(-1, 5) for w in weights])
    outer = np.linalg.cholesky(np.exp(-0.5 * ((x - x.T) / 0.7) ** 2) + 1e-6 * np.eye(5))
    f = np.asarray(prepared.factor) @ model.values @ outer.T
    sigma = np.exp(model.log_weight_noise)
    expected = np.asarray(model.scales())[:, None] * (f + sigma * np.asarray(model.noise_normals)[:, None])
    assert_allclose(flat, expected, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("learned", [False, True])
def test_nuts_recovers_a_conjugate_linear_model(learned):
    """Moments within 4 standard errors, by the effective sample size; with the noise sampled, by quadrature over it."""
    model = HMCRegressor((), noise=None if learned else NOISE, n_samples=1000, random_state=0)
    model.set_params(n_predict_draws=4000).fit(X, Y)
    design = np.column_stack([(X - model.x_offset_) / model.x_scale_, np.ones(40)])
    targets = (Y - model.y_offset_) / model.y_scale_
    levels = np.exp(np.linspace(-3, 1.5, 400)) if learned else np.atleast_1d(NOISE / model.y_scale_)
    log_weight, means, seconds = [], [], []
    for noise in levels:
        covariance = design @ design.T + noise**2 * np.eye(40)
        prior = stats.halfnorm.logpdf(noise) + np.log(noise) if learned else 0.0
        log_weight.append(stats.multivariate_normal(np.zeros(40), covariance).logpdf(targets) + prior)
        posterior = np.linalg.inv(np.eye(3) + design.T @ design / noise**2)
        means.append(posterior @ design.T @ targets / noise**2)
        seconds.append(posterior + np.outer(means[-1], means[-1]))
    weight = np.exp(np.array(log_weight) - max(log_weight))
    weight /= weight.sum()
    mean = np.einsum("l,lv->v", weight, np.array(means))
    covariance = np.einsum("l,lvw->vw", weight, np.array(seconds)) - np.outer(mean, mean)
    draws = model.model_.weights.values[0][:, :, 0]
    worth = min(model.ess_, len(draws))
    std = np.sqrt(np.diag(covariance))
    assert model.rhat_ < 1.02
    assert np.all(np.abs(draws.mean(0) - mean) < 4 * std / np.sqrt(worth))
    assert np.all(np.abs(draws.std(0) / std - 1) < 4 / np.sqrt(2 * worth))
