"""Anchored codes against dense Gaussians, and the bound that they are part of."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import stats

from compared import assert_close, leaves
from dense import posterior
from metaprior.inference import elbo, elbo_terms
from metaprior.kernels import RBF
from metaprior.latents import UnitLatents
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.output_layer import Exact, FunctionGP
from metaprior.output_layer.base import Batch
from metaprior.random import StandardNormals
from metaprior.weight_gp import Anchored, Full, Pathwise, SparseGP
from metaprior.weights import MetaGP, start
from small import affine, noise_of, with_sparse_gps
from written import CASES, JITTER, X_NEW, X, integrated_metagp, quickly

# Condition numbers are below 1e4, and sums of a few hundred terms.
ROUNDING = {"rtol": 1e-9, "atol": 1e-9}
LOCAL = {"input_kernel": RBF([1.5, 2.0])}

pytestmark = pytest.mark.usefixtures("double")


def _mean_field(sparse_gp: Anchored) -> Anchored:
    return dataclasses.replace(sparse_gp, below_diagonal=None)


# --- the KL of anchored values ----------------------------------------------------------------------------------------

KINDS = {
    "all weights": ((2, 3, 2), {"heteroscedastic": True}),
    "all weights of each layer": ((2, 3, 2, 1), {"weight_gp": "per_layer"}),
    "a share, local": ((2, 3, 2), LOCAL),
}


def _kl(model: MetaGP, normals: StandardNormals) -> jax.Array:
    return model.prepared().draw(normals).kl()["kl_u"]


def _rbf(kernel: RBF, a: jax.Array) -> jax.Array:
    return jnp.exp(-0.5 * jnp.sum(((a[:, None] - a[None]) / jnp.exp(kernel.log_lengthscale)) ** 2, axis=-1))


def _gram(model: MetaGP, sparse_gp: Anchored, z: jax.Array) -> jax.Array:
    """K_uu(z), with the weight noise where all weights are anchored, and the jitter."""
    z_in, z_out = z[np.array(sparse_gp.units_in)], z[np.array(sparse_gp.units_out)]
    k = _rbf(sparse_gp.kernel_in, z_in) * _rbf(sparse_gp.kernel_out, z_out)
    if sparse_gp.code_aux is not None:
        k = k * _rbf(model.input_kernel, sparse_gp.code_aux)
    if sparse_gp.whole:
        noise = model.weight_noise
        slope = 0 if noise.slope_in is None else z_in @ noise.slope_in + z_out @ noise.slope_out
        k = k + jnp.diag(jnp.exp(2 * noise.log_std + slope) * jnp.ones(len(k)))
    return k + JITTER * jnp.mean(jnp.diagonal(k)) * jnp.eye(len(k))


def _values_of(model: MetaGP, sparse_gp: Anchored) -> tuple[jax.Array, jax.Array]:
    """The mean and the factor of q(u); those of a share are whitened with the factor at the mean of q(z)."""
    factor = jnp.diag(jnp.exp(sparse_gp.log_diagonal))
    if sparse_gp.below_diagonal is not None:
        factor = factor + jnp.tril(sparse_gp.below_diagonal, -1)
    if sparse_gp.whole:
        return jnp.asarray(sparse_gp.mean), factor
    root = jnp.linalg.cholesky(_gram(model, sparse_gp, jnp.asarray(model.latents.mean)))
    return root @ sparse_gp.mean, root @ factor


def _dense_kl(model: MetaGP, normals: StandardNormals) -> jax.Array:
    """KL[q(u) || N(0, K_uu(z))] with every matrix formed, of all sparse GPs."""
    z, total = model.latents.mean + jnp.exp(model.latents.log_std) * normals.latents.reshape(-1, 2), jnp.zeros(())
    for sparse_gp in model.sparse_gps:
        gram, (mean, factor) = _gram(model, sparse_gp, z), _values_of(model, sparse_gp)
        spread = jnp.trace(jnp.linalg.inv(gram) @ factor @ factor.T) + mean @ jnp.linalg.inv(gram) @ mean
        logs = jnp.linalg.slogdet(gram)[1] - jnp.linalg.slogdet(factor @ factor.T)[1]
        total = total + 0.5 * (spread - len(mean) + logs)
    return total


@pytest.mark.parametrize(("kind", "q"), [*[(kind, "full") for kind in KINDS], (list(KINDS)[1], "mean-field")])
def test_kl_of_anchored_values_and_its_derivatives_are_the_dense_ones_at_the_draw_of_the_latents(kind, q):
    """In q(u), q(z), lengthscales and weight noise; mean-field values of one layer take the factors of its sides."""
    sizes, options = KINDS[kind]
    model = integrated_metagp(sizes, **options)
    model = jax.tree.map(jnp.asarray, model if q == "full" else with_sparse_gps(model, _mean_field))
    noise = noise_of(model, 0, seed=1)
    found, expected = (quickly(eqx.filter_value_and_grad(f))(model, noise) for f in (_kl, _dense_kl))
    assert sum(np.abs(leaf).max() > 1e-3 for leaf in leaves(expected)) > 6
    # K_uu of a share has a condition number of 1e3, and the factors of a grid no jitter
    assert_close(found, expected, rtol=1e-7, atol=1e-7)


# --- anchored weights -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["all weights", "all weights of each layer"])
def test_where_all_weights_are_anchored_they_are_the_drawn_values_times_their_scales(kind):
    sizes, options = KINDS[kind]
    model = integrated_metagp(sizes, **options)
    noise = noise_of(model, 1, seed=1)
    weights = quickly(lambda m, n: m.prepared().draw(n).weights(jnp.zeros((1, 2)), n.rows))(model, noise)
    values, normals = [], np.asarray(noise.weights)
    for sparse_gp in model.sparse_gps:
        own, normals = normals[: sparse_gp.n_inducing], normals[sparse_gp.n_inducing :]
        mean, factor = _values_of(model, sparse_gp)
        values += np.asarray(mean + factor @ own).tolist()
    assert len(normals) == 0
    for layer, w in enumerate(weights):
        scale = np.exp(model.log_scale[layer][[0] * (len(w) - 1) + [1]])
        own, values = np.reshape(values[: w.size], w.shape), values[w.size :]
        np.testing.assert_allclose(w, scale[:, None] * own, rtol=1e-12)
    assert len(values) == 0


def _free(model: MetaGP) -> MetaGP:
    """The same layers below with free codes where the anchored ones are at the mean of q(z): dense.py knows these."""
    z, below = model.latents.mean, dataclasses.replace(model, weight_layers=model.weight_layers[:-1], output=None)

    def moved(m: Anchored) -> SparseGP:
        q = m.mean, m.log_diagonal, m.below_diagonal
        return SparseGP(*q, m.kernel_in, m.kernel_out, z[list(m.units_in)], z[list(m.units_out)], m.code_aux)

    return with_sparse_gps(below, moved)


def _apart(sparse_gp: Anchored) -> Anchored:
    """Anchors at the first weights, no two of them the same."""
    pairs = [(i, j) for i in range(3) for j in range(3, 6)][: sparse_gp.n_inducing]
    units_in, units_out = zip(*pairs, strict=True)
    return dataclasses.replace(sparse_gp, units_in=units_in, units_out=units_out)


@pytest.mark.parametrize(
    ("conditional", "options"), [(Full(jitter=1e-12), LOCAL), (Pathwise(8, 8), {})], ids=["full, local", "pathwise"]
)
def test_weights_given_a_share_of_anchors_have_the_dense_mean_and_covariance(conditional, options, monkeypatch):
    monkeypatch.setattr(start, "MOST_WEIGHTS", 0)
    model = with_sparse_gps(integrated_metagp((2, 3, 1), conditional, **options), _apart)
    assert not model.sparse_gps[0].whole
    x, z = X_NEW[:2], model.latents.mean
    spectral = np.random.default_rng(3).standard_normal((600, model.sizes().spectral))
    mean, linear = affine(model, jnp.asarray(x), None if isinstance(conditional, Full) else spectral)
    dense = posterior("full", _free(model), z, x)
    given = linear @ np.swapaxes(linear, 1, 2)
    error = given.std(axis=0) / np.sqrt(len(given))
    # the jitter of 1e-10 that is in the update and not in the draw leaves 1e-7, as for free codes
    np.testing.assert_allclose(mean, np.broadcast_to(dense.mean, mean.shape), **ROUNDING)
    np.testing.assert_array_less(np.abs(given.mean(axis=0) - dense.covariance), 4 * error + 1e-7)


@pytest.mark.parametrize("options", [{}, LOCAL], ids=["global", "local"])
def test_without_weight_noise_anchored_weights_are_the_values_that_the_output_layer_is_told(options, monkeypatch):
    """At a draw of the latents off their mean; the output layer shares the GP."""
    monkeypatch.setattr(start, "MOST_WEIGHTS", 0)
    model = with_sparse_gps(integrated_metagp((2, 3, 1), weight_std=0.0, **options), _apart)
    (sparse_gp,), noise = model.sparse_gps, noise_of(model, 0, seed=1)
    x = jnp.zeros((6, 2)) if sparse_gp.code_aux is None else jnp.asarray(sparse_gp.code_aux)
    draw = quickly(lambda m, n: (m.prepared().draw(n).weights(x, jnp.zeros((6, 0)))[0], m.prepared().draw(n).own))
    weights, (own,) = draw(model, noise)
    scales = np.exp(model.log_scale[0][[0, 0, 1]])
    for m, (i, j) in enumerate(zip(sparse_gp.units_in, sparse_gp.units_out, strict=True)):
        weight = np.asarray(weights)[(m, i, j - 3) if weights.ndim == 3 else (i, j - 3)]
        # off by the jitter times alpha
        np.testing.assert_allclose(weight, scales[i] * own.values[m], rtol=0, atol=1e-6)


# --- symmetry ---------------------------------------------------------------------------------------------------------


def _permuted(model: MetaGP, normals: StandardNormals) -> tuple[MetaGP, StandardNormals]:
    """Three hidden units, after two inputs and a bias, in another order: latents, anchored values and normals."""
    units, new = np.arange(len(model.latents.mean)), np.array([5, 3, 4])
    units[3:6] = new
    (sparse_gp,) = model.sparse_gps
    weights = [3 * i + j - 3 for i in range(3) for j in new]
    factor = np.asarray(_values_of(model, sparse_gp)[1])
    u = sparse_gp.mean + factor @ np.asarray(normals.weights[-9:])
    moved = np.linalg.cholesky((factor @ factor.T)[np.ix_(weights, weights)])
    below = None if sparse_gp.below_diagonal is None else np.tril(moved, -1)
    sparse_gp = dataclasses.replace(
        sparse_gp, mean=sparse_gp.mean[weights], log_diagonal=np.log(np.diag(moved)), below_diagonal=below
    )
    own = np.linalg.solve(moved, u[weights] - sparse_gp.mean)
    latents = UnitLatents(model.latents.mean[units], model.latents.log_std[units])
    return dataclasses.replace(model, sparse_gps=(sparse_gp,), latents=latents), dataclasses.replace(
        normals,
        latents=normals.latents.reshape(-1, 2)[units].ravel(),
        weights=jnp.concatenate([normals.weights[:-9], jnp.asarray(own)]),
    )


@quickly
def _bound_and_moments(model: Model, normals: StandardNormals, batch: Batch):
    gp = FunctionGP.of(model.weights.prepared().draw(normals), model.network)
    terms, _ = elbo_terms(model, jax.tree.map(lambda n: n[None], normals), batch)
    return elbo(terms), model.output.with_rows(batch).conditioned(gp, model.likelihood).moments(jnp.asarray(X_NEW))


@pytest.mark.parametrize(("case", "q"), [("one GP", "full"), ("local output", "mean-field")])
def test_order_of_the_hidden_units_changes_neither_bound_nor_predictions(case, q):
    sizes, options = CASES[case]
    weights = integrated_metagp(sizes, **options)
    weights = weights if q == "full" else with_sparse_gps(weights, _mean_field)
    model = Model(weights, Dense(sizes), Gaussian(np.log(np.full(sizes[-1], 0.3))), Exact())
    y = np.random.default_rng(2).standard_normal((len(X), sizes[-1]))
    batch = Batch(jnp.asarray(X), jnp.asarray(y), jnp.ones(len(X)))
    noise = noise_of(weights, len(X), seed=1)
    other, moved = _permuted(weights, noise)
    assert not np.allclose(other.latents.mean, weights.latents.mean)
    found = _bound_and_moments(dataclasses.replace(model, weights=other), moved, batch)
    assert_close(found, _bound_and_moments(model, noise, batch), **ROUNDING)


@quickly
def _terms(model: Model, normals: StandardNormals, batch: Batch):
    return elbo_terms(model, normals, batch)[0]


def test_one_draw_has_the_terms_of_the_same_draw_taken_twice():
    """One draw goes by a way of its own, without a batch of matrices."""
    sizes, options = CASES["local output"]
    weights = integrated_metagp(sizes, **options)
    model = Model(weights, Dense(sizes), Gaussian(np.log(np.full(sizes[-1], 0.3))), Exact())
    batch = Batch(jnp.asarray(X), jnp.sin(jnp.asarray(X))[:, : sizes[-1]], jnp.ones(len(X)))
    noise = noise_of(weights, len(X), seed=1)
    once, twice = (
        _terms(model, jax.tree.map(lambda n, count=count: jnp.stack([n] * count), noise), batch) for count in (1, 2)
    )
    assert_close(once, twice, **ROUNDING)


def test_the_scale_of_a_local_output_layer_pays_its_logarithm_above_the_least_and_no_other_does():
    weights = integrated_metagp((2, 3, 1), **LOCAL)
    for scale, cost in ((1e-3, 0.0), (1e-5, 0.0), (0.2, np.log(200))):
        log_scale = np.array(weights.log_scale)
        log_scale[-1, 0] = np.log(scale)
        found = dataclasses.replace(weights, log_scale=log_scale).kl()["kl_scale"]
        np.testing.assert_allclose(found, cost, atol=1e-12)
    assert "kl_scale" not in integrated_metagp((2, 3, 1)).kl()


def test_lengthscales_of_columns_pay_a_cauchy_price_around_their_median_and_no_price_when_they_are_equal():
    kernel = RBF((1.0, 1.0, 4.0))
    weights = integrated_metagp((3, 3, 1), input_kernel=kernel)
    price = float(weights.kl()["kl_lengthscales"])
    assert price == pytest.approx(np.log1p((np.log(4) / 0.2) ** 2))
    # up to a constant it is minus the log density
    density = stats.cauchy(scale=0.2).logpdf
    assert price == pytest.approx(density(0) - density(np.log(4)))
    equal = integrated_metagp((3, 3, 1), input_kernel=RBF((2.0, 2.0, 2.0)))
    assert float(equal.kl()["kl_lengthscales"]) == 0
    assert "kl_lengthscales" not in integrated_metagp((3, 3, 1)).kl()


# --- the bound --------------------------------------------------------------------------------------------------------

NOISE_STD = 0.15
X_TINY = np.array([[-1.0], [-0.2], [0.4], [1.3]])
Y_TINY = np.array([[-1.1], [-0.7], [0.9], [1.0]])


def _tiny(weight_gp: str) -> Model:
    """1-2-1: six units and seven weights."""
    weights = integrated_metagp((1, 2, 1), weight_gp=weight_gp)
    at_prior = UnitLatents(np.zeros((6, 2)), np.zeros((6, 2)))
    return Model(
        dataclasses.replace(weights, latents=at_prior), Dense((1, 2, 1)), Gaussian(np.log([NOISE_STD])), Exact()
    )


def _likelihoods(model: MetaGP, num_latent: int = 40_000, num_weight: int = 20) -> np.ndarray:
    """p(y | w) for z and all seven weights from the prior, the mean over the weights for every z."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((num_latent, 6, 2))
    # input and bias to the two hidden units, then these and their bias to the output
    z_in, z_out = z[:, [0, 0, 1, 1, 2, 3, 4]], z[:, [2, 3, 2, 3, 5, 5, 5]]
    source = model.sparse_gps[0]

    def rbf(a: np.ndarray, log_lengthscale: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * np.sum(((a[:, :, None] - a[:, None]) / np.exp(log_lengthscale)) ** 2, axis=-1))

    k = rbf(z_in, source.kernel_in.log_lengthscale) * rbf(z_out, source.kernel_out.log_lengthscale)
    if model.output.group is None:  # the layers have GPs of their own
        k[:, :4, 4:] = k[:, 4:, :4] = 0
    noises = np.repeat([model.weight_noise.log_std, model.output.weight_noise.log_std], [4, 3])
    scale = np.exp(model.log_scale[[0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1]])
    covariance = np.outer(scale, scale) * (k + np.diag(np.exp(2 * noises)))
    w = np.einsum("sab,sbj->saj", np.linalg.cholesky(covariance), rng.standard_normal((num_latent, 7, num_weight)))
    w = w[..., None]
    x, y = X_TINY[:, 0], Y_TINY[:, 0]
    f = sum(np.tanh(w[:, j] * x + w[:, 2 + j]) * w[:, 4 + j] for j in range(2)) + w[:, 6]
    return np.exp(stats.norm(0, NOISE_STD).logpdf(y - f).sum(axis=-1)).mean(axis=1)


def _values(model: Model, normals: StandardNormals) -> tuple[jax.Array, jax.Array]:
    """The inner bound and the KL, a draw each."""
    batch, prepared = Batch(jnp.asarray(X_TINY), jnp.asarray(Y_TINY), jnp.ones(4)), model.weights.prepared()

    def one(own: StandardNormals) -> tuple[jax.Array, jax.Array]:
        draw = prepared.draw(own)
        gp = FunctionGP.of(draw, model.network)
        return model.output.bound(gp, model.likelihood, batch, own.rows)[0], sum(draw.kl().values())

    inner, kl = jax.vmap(one)(normals)
    return inner, kl + sum(model.weights.kl().values())


def _normals(model: Model, count: int, seed: int) -> StandardNormals:
    rng, sizes = np.random.default_rng(seed), model.sizes()
    shapes = (sizes.latents,), (sizes.weights,), (sizes.spectral,), (4, 0)
    return StandardNormals(*[jnp.asarray(rng.standard_normal((count, *shape))) for shape in shapes])


@quickly
def _trained(model: Model, normals: StandardNormals) -> Model:
    """q(z) and q(u) fitted to the bound, one draw after the other."""

    def q_of(m: Model) -> list:
        units, (sparse_gp,) = m.weights.latents, m.weights.sparse_gps
        return [units.mean, units.log_std, sparse_gp.mean, sparse_gp.log_diagonal, sparse_gp.below_diagonal]

    optimizer = optax.adam(0.03)

    def step(state: tuple, own: StandardNormals) -> tuple:
        q, moments = state

        def loss(q: list) -> jax.Array:
            inner, kl = _values(eqx.tree_at(q_of, model, q), own)
            return jnp.mean(kl - inner)

        change, moments = optimizer.update(jax.grad(loss)(q), moments)
        return (optax.apply_updates(q, change), moments), None

    first = [jnp.asarray(leaf) for leaf in q_of(model)]
    batches = jax.tree.map(lambda n: n.reshape(len(n) // 8, 8, *n.shape[1:]), normals)
    (q, _), _ = jax.lax.scan(step, (first, optimizer.init(first)), batches)
    return eqx.tree_at(q_of, model, q)


@pytest.mark.parametrize("weight_gp", ["shared", "per_layer"])
def test_integrated_bound_is_below_the_evidence_of_the_prior_of_everything(weight_gp):
    model = _tiny(weight_gp)
    likelihoods = _likelihoods(model.weights)
    evidence = np.log(likelihoods.mean())
    evidence_error = likelihoods.std() / np.sqrt(len(likelihoods)) / likelihoods.mean()
    trained = _trained(model, _normals(model, 8 * 400, seed=1))
    for q in (model, trained):
        inner, kl = (np.asarray(part) for part in quickly(_values)(q, _normals(model, 4000, seed=2)))
        error = np.hypot((inner - kl).std() / np.sqrt(4000), evidence_error)
        assert (inner - kl).mean() < evidence + 4 * error
    # so near that without the KL it would be none
    assert (inner - kl).mean() > evidence - 3.5
    assert inner.mean() > evidence + 4 * error
