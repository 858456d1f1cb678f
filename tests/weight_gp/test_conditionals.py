"""The conditionals against dense Gaussians: `full` and `pathwise` as joint draws, `fitc` and `diag` as moments."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dense import layer_places, posterior, pushing
from metaprior.kernels import RBF, Periodic
from metaprior.weight_gp import FITC, Diag, Full, Pathwise, SparseGP
from metaprior.weight_gp.independent import cheaper_order, explained_activation_first, explained_weight_first, is_small
from metaprior.weights import MetaGP
from small import affine, drawn_weights, inputs, noise_of, replace, small_metagp, with_sparse_gps

# Matheron's rule with K_uu + J in the update and K_uu in the draw is off by J A A': |A|^2 is below 1e2 for these
# models and squared scales below 10, so a relative jitter of 1e-10 leaves 1e-7; the grid's own 1e-12 leaves less.
EXACT = {"rtol": 0, "atol": 1e-7}
# No approximation at all: only rounding, with K_uu's condition number below 1e3.
ROUNDING = {"rtol": 1e-10, "atol": 1e-10}

ONE_GP, GP_PER_LAYER = {}, {"weight_gp": "per_layer"}
LOCAL = {"input_kernel": RBF([1.5, 2.0])}
LAST_LOCAL = {"input_kernel": Periodic(2.5, 1.1), "local_layers": (-1,), "heteroscedastic": True}

x64 = pytest.mark.usefixtures("double")


# --- full -------------------------------------------------------------------------------------------------------------


@x64
@pytest.mark.parametrize(
    "options", [ONE_GP, GP_PER_LAYER, LOCAL, LAST_LOCAL], ids=["one", "layer", "local", "last local"]
)
def test_full_conditional_equals_dense_gaussian(options):
    model, x = small_metagp(Full(jitter=1e-12), **options), inputs(2, 2)
    mean, linear = (part[0] for part in affine(model, x))
    dense = posterior("full", model, model.latents.mean, np.asarray(x))
    np.testing.assert_allclose(mean, dense.mean, **ROUNDING)
    np.testing.assert_allclose(linear @ linear.T, dense.covariance, **EXACT)


@x64
def test_full_covariances_across_layers_and_inputs_are_not_zero_where_one_gp_serves_them():
    """The claim above would be empty if the dense covariances vanished there."""
    model, x = small_metagp(Full(), **LOCAL), np.asarray(inputs(2, 2))
    covariance = posterior("full", model, model.latents.mean, x).covariance
    first, last = (place.reshape(2, -1) for place in layer_places(model, 2))
    assert np.abs(covariance[np.ix_(first.ravel(), last.ravel())]).max() > 0.1
    assert np.abs(covariance[np.ix_(first[0], first[1])]).max() > 0.1


@x64
def test_a_row_of_full_has_alone_the_marginal_it_has_among_others():
    model, x = small_metagp(Full(jitter=1e-12), **LOCAL), inputs(2, 2)
    mean, linear = (part[0] for part in affine(model, x[1:]))
    joint = posterior("full", model, model.latents.mean, np.asarray(x))
    second = np.concatenate([place[1].ravel() for place in layer_places(model, 2)])
    np.testing.assert_allclose(mean, joint.mean[second], **ROUNDING)
    np.testing.assert_allclose(linear @ linear.T, joint.covariance[np.ix_(second, second)], **EXACT)


# --- pathwise ---------------------------------------------------------------------------------------------------------


def _path(model: MetaGP, num_rows: int, num_draws: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean [S, W] of the weights given the frequencies, and their covariance's average and standard error."""
    spectral = np.random.default_rng(3).standard_normal((num_draws, model.sizes().spectral))
    mean, linear = affine(model, inputs(num_rows, 2), spectral)
    covariances = linear @ np.swapaxes(linear, 1, 2)
    return mean, covariances.mean(axis=0), covariances.std(axis=0) / np.sqrt(num_draws)


@x64
@pytest.mark.parametrize("options", [ONE_GP, LOCAL, LAST_LOCAL], ids=["one", "local", "last local"])
def test_pathwise_has_the_dense_mean_and_full_covariance(options):
    model = small_metagp(Pathwise(num_features=8, num_noise_features=8), weight_std=0.5, **options)
    mean, covariance, error = _path(model, num_rows=2, num_draws=3000)
    dense = posterior("full", model, model.latents.mean, np.asarray(inputs(2, 2)))
    np.testing.assert_allclose(mean, np.broadcast_to(dense.mean, mean.shape), **ROUNDING)
    assert np.max(error) < 0.05 * np.max(np.abs(dense.covariance))  # enough draws to see a missing part
    np.testing.assert_array_less(np.abs(covariance - dense.covariance), 5 * error + 1e-7)


@x64
def test_pathwise_weight_noise_is_white_with_the_dense_variances():
    """With the same frequencies, what the weight noise adds is sigma_w^2 on the diagonal and nothing beside."""
    conditional = Pathwise(num_features=8, num_noise_features=8)
    loud, silent = (small_metagp(conditional, weight_std=std, heteroscedastic=True) for std in (0.7, 0.0))
    spectral = np.random.default_rng(3).standard_normal((3000, loud.sizes().spectral))
    covariances = []
    for model in (loud, silent):
        linear = affine(model, inputs(1, 2), spectral)[1]
        covariances.append(linear @ np.swapaxes(linear, 1, 2))
    added = covariances[0] - covariances[1]
    error = added.std(axis=0) / np.sqrt(len(added))
    dense = [posterior("full", m, m.latents.mean).covariance for m in (loud, silent)]
    assert np.max(error) < 0.05 * np.max(dense[0] - dense[1])
    np.testing.assert_array_less(np.abs(added.mean(axis=0) - (dense[0] - dense[1])), 5 * error + 1e-7)


@x64
@pytest.mark.parametrize("conditional", [Pathwise(num_features=4), Full(jitter=1e-12)], ids=["pathwise", "full"])
def test_weights_at_inducing_codes_are_u(conditional):
    """With no weight noise, a weight whose code is the m-th inducing code is u_m, whatever the prior's draw."""
    model = small_metagp(conditional, weight_std=0.0)
    weight_layer, z = model.weight_layers[0], model.latents.mean
    pairs = [(i, j) for i in weight_layer.inputs for j in weight_layer.outputs][: model.sparse_gps[0].n_inducing]
    code_in, code_out = (z[list(side)] for side in zip(*pairs, strict=True))
    model = with_sparse_gps(model, lambda m: dataclasses.replace(m, code_in=code_in, code_out=code_out))
    noise = noise_of(model, 1, seed=1)
    noise = replace(noise, latents=0 * noise.latents)
    weights = drawn_weights(model, inputs(1, 2), jax.tree.map(lambda n: n[None], noise))[0]
    root = np.linalg.cholesky(np.asarray(model.sparse_gps[0].gram(None)))
    u = root @ np.asarray(model.sparse_gps[0].draw(noise.weights[: len(pairs)]))
    scale = np.exp([model.log_scale[0][int(i == weight_layer.inputs[-1])] for i, _ in pairs])
    # `full` meets every code twice in its grid: the two values differ by the root of its jitter, times |A|
    np.testing.assert_allclose(weights[: len(pairs)], scale * u, atol=1e-4 if isinstance(conditional, Full) else 1e-6)


# --- fitc and diag ----------------------------------------------------------------------------------------------------


@eqx.filter_jit
def _moments(model: MetaGP, noise, x, activations):
    """Mean and variance of every layer's pre-activations, by layer; noise with a leading axis."""
    prepared = model.prepared()

    def one(n):
        draw, found = prepared.draw(n), {}
        for group, layers in enumerate(model.groups):
            for place, layer in enumerate(layers):
                found[layer] = draw.draws[group].moments(place, activations[layer], x)
        return [found[layer] for layer in range(len(model.weight_layers))]

    return jax.vmap(one)(noise)


def _activations(model: MetaGP, num_rows: int) -> list[jax.Array]:
    return [inputs(num_rows, len(w.inputs), seed=20 + layer) for layer, w in enumerate(model.weight_layers)]


def _given_v(model: MetaGP, normals: np.ndarray) -> MetaGP:
    """The model with q(v) a point: what `fitc` draws with these normals."""
    parts = iter(np.split(normals, np.cumsum([m.n_inducing for m in model.sparse_gps])))

    def at_a_point(m: SparseGP) -> SparseGP:
        v = np.asarray(m.draw(jnp.asarray(next(parts))))
        none = np.zeros_like(m.below_diagonal)
        return dataclasses.replace(m, mean=v, log_diagonal=np.full_like(v, -np.inf), below_diagonal=none)

    return with_sparse_gps(model, at_a_point)


INDEPENDENT = pytest.mark.parametrize("options", [ONE_GP, LAST_LOCAL], ids=["one", "last local"])


@x64
@INDEPENDENT
def test_diag_moments_equal_dense(options):
    model, x = small_metagp(Diag(), **options), inputs(4, 2)
    h = _activations(model, 4)
    noise = jax.tree.map(lambda n: n[None], noise_of(model, 4))
    dense = posterior("diag", model, model.latents.mean, np.asarray(x))
    for layer, (mean, variance) in enumerate(_moments(model, noise, x, h)):
        push = pushing(model, layer, np.asarray(h[layer]))
        np.testing.assert_allclose(mean[0], push @ dense.mean, **ROUNDING)
        covariance = push @ dense.covariance @ np.swapaxes(push, 1, 2)
        np.testing.assert_allclose(variance[0], np.diagonal(covariance, axis1=1, axis2=2), **ROUNDING)


@x64
@INDEPENDENT
def test_fitc_moments_equal_dense_given_u_and_integrated_over_u(options):
    model, x = small_metagp(FITC(), **options), inputs(4, 2)
    h, size = _activations(model, 4), model.sizes().weights
    normals = np.random.default_rng(1).standard_normal(size)
    points = np.concatenate([normals[None], np.zeros((1, size)), np.eye(size)])
    noise = jax.tree.map(lambda n: jnp.broadcast_to(n, (len(points), *n.shape)), noise_of(model, 4))
    found = _moments(model, replace(noise, weights=jnp.asarray(points)), x, h)
    given = posterior("fitc", _given_v(model, normals), model.latents.mean, np.asarray(x))
    integrated = posterior("fitc", model, model.latents.mean, np.asarray(x))
    for layer, (mean, variance) in enumerate(found):
        push = pushing(model, layer, np.asarray(h[layer]))
        np.testing.assert_allclose(mean[0], push @ given.mean, **ROUNDING)
        np.testing.assert_allclose(_each_diagonal(variance[0]), _pushed(push, given.covariance), **ROUNDING)
        linear = np.moveaxis(np.asarray(mean[2:] - mean[1]), 0, -1)  # [B, J, normals]: the mean is affine in them
        covariance = linear @ np.swapaxes(linear, 1, 2) + _each_diagonal(variance[1])
        np.testing.assert_allclose(mean[1], push @ integrated.mean, **ROUNDING)
        np.testing.assert_allclose(covariance, _pushed(push, integrated.covariance), **ROUNDING)


def _each_diagonal(values: np.ndarray) -> np.ndarray:
    return np.asarray(values)[:, :, None] * np.eye(values.shape[1])


def _pushed(push: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    return push @ covariance @ np.swapaxes(push, 1, 2)


@x64
@pytest.mark.parametrize("local", [False, True], ids=["global", "local"])
@pytest.mark.parametrize(("num_in", "num_out"), [(4, 3), (60, 70)], ids=["small", "large"])
def test_weight_first_equals_activation_first(num_in, num_out, local):
    assert is_small(num_in, num_out) == (num_in == 4)
    rng = np.random.default_rng(0)
    h2, e_in, e_out = (jnp.asarray(rng.uniform(size=s)) for s in ((7, num_in), (num_in, 6), (num_out, 6)))
    a = jnp.asarray(rng.uniform(size=(7, 6))) if local else None
    precision = rng.standard_normal((6, 6))
    arguments = (h2, e_in, e_out, a, jnp.asarray(precision @ precision.T))
    written_out = np.einsum(
        "ni,im,ik,jm,jk,nm,nk,mk->nj", h2, e_in, e_in, e_out, e_out, *([np.ones((7, 6)) if a is None else a] * 2),
        arguments[-1], optimize=True,
    )  # fmt: skip
    np.testing.assert_allclose(explained_weight_first(*arguments), written_out, rtol=1e-10)
    np.testing.assert_allclose(explained_activation_first(*arguments), written_out, rtol=1e-10)


@pytest.mark.parametrize("local", [False, True], ids=["global", "local"])
@pytest.mark.parametrize("shape", [(1, 784, 100, 50), (1000, 3, 2, 10), (64, 1, 5, 20), (64, 20, 20, 20)])
def test_cheaper_order_takes_fewer_operations(shape, local):
    num_rows, num_in, num_out, m = shape
    weights = num_in * num_out
    weight_first = num_rows * weights * m**2 if local else weights * m**2 + num_rows * weights
    activation_first = num_rows * (num_in + num_out) * m**2
    expected = explained_weight_first if weight_first < activation_first else explained_activation_first
    assert cheaper_order(num_rows, np.zeros((num_in, m)), np.zeros((num_out, m)), local=local) is expected
