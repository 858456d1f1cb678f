"""The conditionals as functions of the network: layers, explicit weights, symmetries, special cases and float32."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr

from dense import layer_places, posterior
from metaprior.kernels import RBF, Constant
from metaprior.latents import UnitLatents
from metaprior.networks import Dense
from metaprior.random import StandardNormals
from metaprior.weight_gp import FITC, Diag, Full, Pathwise, SparseGP
from metaprior.weight_gp.pathwise import forms_weights
from metaprior.weights import MetaGP
from small import affine, inputs, noise_of, replace, small_metagp, with_sparse_gps

# The same arithmetic in another order, K_uu's condition number below 1e3.
ROUNDING = {"rtol": 1e-10, "atol": 1e-10}
LOCAL = {"input_kernel": RBF([0.9, 1.4]), "local_layers": (-1,)}
ALL = [Diag(), FITC(), Full(), Pathwise(num_features=8)]
NAMES = ["diag", "fitc", "full", "pathwise"]

x64 = pytest.mark.usefixtures("double")


@eqx.filter_jit
def _outputs(model: MetaGP, normals: StandardNormals, x: jax.Array, sizes: tuple[int, ...] = (2, 3, 2)) -> jax.Array:
    return Dense(sizes)(model.prepared().draw(normals).at(x, normals.rows), x)


@eqx.filter_jit
def _pushed_and_weights(model: MetaGP, normals: StandardNormals, x: jax.Array, h: list) -> tuple[list, list]:
    draw = model.prepared().draw(normals)
    layers = draw.at(x, normals.rows)
    return [layer(a) for layer, a in zip(layers, h, strict=True)], draw.weights(x, normals.rows)


def _activations(model: MetaGP, num_rows: int) -> list[jax.Array]:
    return [inputs(num_rows, len(w.inputs), seed=20 + layer) for layer, w in enumerate(model.weight_layers)]


@x64
@pytest.mark.parametrize("conditional", ALL[2:], ids=NAMES[2:])
def test_layers_multiply_by_the_explicit_weights(conditional):
    """A local and a global layer in one model."""
    model, x = small_metagp(conditional, **LOCAL), inputs(3, 2)
    h = _activations(model, 3)
    pushed, weights = _pushed_and_weights(model, noise_of(model, 3, seed=1), x, h)
    assert [w.shape for w in weights] == [(3, 3), (3, 4, 2)]
    for out, a, w in zip(pushed, h, weights, strict=True):
        np.testing.assert_allclose(out, np.einsum("ni,nij->nj", a, np.broadcast_to(w, (3, *w.shape[-2:]))), **ROUNDING)


@x64
def test_a_row_of_the_global_model_is_the_same_through_factors_and_through_formed_weights():
    """One row is cheaper through the factors, twenty (four rows of five places) with the weights formed once."""
    model, x = small_metagp(Pathwise(num_features=8)), inputs(4, 2)
    noise = noise_of(model, 4, seed=1)
    columns = model.sparse_gps[0].n_inducing + 8 + Pathwise().num_noise_features
    for layer, weight_layer in enumerate(model.weight_layers):
        sizes = len(weight_layer.inputs), len(weight_layer.outputs), columns
        assert forms_weights(20, *sizes)
        assert not forms_weights(1, *sizes)
        h = inputs(20, sizes[0], seed=20 + layer).reshape(4, 5, -1)
        push = model.prepared().draw(noise).at(x, noise.rows)[layer]
        one_by_one = [[push(place[None])[0] for place in row] for row in h]
        np.testing.assert_allclose(push(h), np.asarray(one_by_one), **ROUNDING)


@x64
def test_independent_layers_add_the_rows_normals_to_the_mean_weights():
    """`diag`: a layer's output is h @ mean weights + std * normals, each normal used by one output alone."""
    model, x = small_metagp(Diag(), **LOCAL), inputs(3, 2)
    h, noise = _activations(model, 3), noise_of(model, 3, seed=1)
    mean, weights = _pushed_and_weights(model, replace(noise, latents=0 * noise.latents, rows=0 * noise.rows), x, h)
    drawn = _pushed_and_weights(model, replace(noise, latents=0 * noise.latents), x, h)[0]
    dense = posterior("diag", model, model.latents.mean, np.asarray(x))
    normals = np.split(np.asarray(noise.rows), [3], axis=1)
    for layer, place in enumerate(layer_places(model, 3)):
        np.testing.assert_allclose(weights[layer], dense.mean[place], **ROUNDING)
        variances = np.broadcast_to(np.diag(dense.covariance)[place], (3, *place.shape[-2:]))
        std = np.sqrt(np.einsum("ni,nij->nj", np.asarray(h[layer]) ** 2, variances))
        means = np.einsum("ni,nij->nj", h[layer], np.broadcast_to(dense.mean[place], variances.shape))
        np.testing.assert_allclose(mean[layer], means, **ROUNDING)
        np.testing.assert_allclose(drawn[layer], means + std * normals[layer], **ROUNDING)


# --- no two batched factorisations at once ----------------------------------------------------------------------------


def _linear_algebra(jaxpr) -> list[tuple[str, int]]:
    """Every Cholesky factorisation and triangular solve of a program, with the rank of its matrix."""
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("cholesky", "triangular_solve"):
            found.append((equation.primitive.name, equation.invars[0].aval.ndim))
        for inner in jax.tree.leaves(equation.params):
            if isinstance(inner, ClosedJaxpr | Jaxpr):
                found += _linear_algebra(inner)
    return found


def test_full_factors_one_matrix_at_a_time():
    """LAPACK calls on a batch wait for the pool they run in: two of them at once hang a machine of two cores."""
    model = small_metagp(Full(), input_kernel=RBF())
    noise = jax.tree.map(lambda n: jnp.stack([n, n]), noise_of(model, 3, seed=1))

    def loss(z: jax.Array) -> jax.Array:
        prepared = dataclasses.replace(model, latents=UnitLatents(z, model.latents.log_std)).prepared()
        return jnp.sum(jax.vmap(lambda n: prepared.draw(n).at(inputs(3, 2), n.rows)[0](inputs(3, 3)))(noise))

    found = _linear_algebra(jax.make_jaxpr(jax.grad(loss))(jnp.asarray(model.latents.mean)).jaxpr)
    assert {name for name, _ in found} == {"cholesky"}  # factors of this size are inverted in products
    assert {rank for _, rank in found} == {2}


# --- an input kernel that is constant is none -------------------------------------------------------------------------


def _constant_and_global(conditional) -> tuple[MetaGP, MetaGP]:
    constant = small_metagp(conditional, input_kernel=Constant(1.0))
    no_kernel = dataclasses.replace(constant, input_kernel=None, local=(False,))
    return constant, with_sparse_gps(no_kernel, lambda m: dataclasses.replace(m, code_aux=None))


@x64
@pytest.mark.parametrize("conditional", [Diag(), FITC(), Pathwise(8)], ids=["diag", "fitc", "pathwise"])
def test_constant_input_kernel_gives_the_global_model(conditional):
    """With the same normals, and for `pathwise` where the random signs of the constant's features are +1."""
    constant, without = _constant_and_global(conditional)
    noise, x = noise_of(constant, 4, seed=1), inputs(4, 2)
    same = noise
    if isinstance(conditional, Pathwise):
        before = 8 * 2 * 3  # normals of two RBFs in two dimensions
        signs, spectral = slice(before, before + 8), noise.spectral
        noise = replace(noise, spectral=spectral.at[signs].set(jnp.abs(spectral[signs])))
        same = replace(noise, spectral=jnp.delete(spectral, np.r_[signs]))
    assert without.sizes().spectral == same.spectral.size
    np.testing.assert_allclose(_outputs(constant, noise, x), _outputs(without, same, x), **ROUNDING)


@x64
def test_full_with_constant_input_kernel_has_the_mean_and_covariance_of_the_global_model():
    constant, without = _constant_and_global(Full(jitter=1e-12))
    (mean,), (linear,) = affine(constant, inputs(2, 2))
    (global_mean,), (global_linear,) = affine(without, inputs(2, 2))
    places = layer_places(constant, 2)
    row_of = [np.concatenate([p[n].ravel() for p in places]) for n in range(2)]
    covariance = linear @ linear.T
    for n in range(2):
        np.testing.assert_allclose(mean[row_of[n]], global_mean, **ROUNDING)
        for k in range(2):  # the weights at the two rows are the same weights: 1e-12 of jitter apart, times |A|^2
            block = covariance[np.ix_(row_of[n], row_of[k])]
            np.testing.assert_allclose(block, global_linear @ global_linear.T, rtol=0, atol=1e-7)


# --- hidden units have no order ---------------------------------------------------------------------------------------

ORDER = np.array([2, 0, 1])
HIDDEN = range(3, 6)  # units of 2-3-2: two inputs and a bias, three hidden and a bias, two outputs


def _reordered(model: MetaGP) -> MetaGP:
    rows = np.arange(len(model.latents.mean))
    rows[list(HIDDEN)] = np.array(HIDDEN)[ORDER]
    return dataclasses.replace(model, latents=UnitLatents(model.latents.mean[rows], model.latents.log_std[rows]))


@x64
@pytest.mark.parametrize("conditional", [Diag(), FITC(), Pathwise(8)], ids=["diag", "fitc", "pathwise"])
def test_reordered_hidden_units_give_the_same_function(conditional):
    """Latents move with the units' own normals; the features of the white noise know the order and are left out."""
    weight_std = 0.0 if isinstance(conditional, Pathwise) else 0.3
    model, x = small_metagp(conditional, weight_std=weight_std, **LOCAL), inputs(4, 2)
    noise = noise_of(model, 4, seed=1)
    noise = replace(noise, latents=0 * noise.latents)
    moved = noise
    if noise.rows.shape[1]:  # the global group, the first layer, stands first: its three outputs' normals
        moved = replace(noise, rows=noise.rows.at[:, :3].set(noise.rows[:, ORDER]))
    before, after = _outputs(model, noise, x), _outputs(_reordered(model), moved, x)
    assert np.std(before) > 0.1
    np.testing.assert_allclose(after, before, **ROUNDING)


@x64
def test_reordered_hidden_units_reorder_the_full_gaussian():
    """The same normals make another draw, for a Cholesky factor depends on the order; the distribution does not."""
    model, x = small_metagp(Full(jitter=1e-12)), inputs(1, 2)
    (mean,), (linear,) = affine(model, x)
    (moved_mean,), (moved,) = affine(_reordered(model), x)
    first, last = layer_places(model, 1)
    places = np.concatenate([first[:, ORDER].ravel(), last[[*ORDER, 3]].ravel()])
    np.testing.assert_allclose(moved_mean, mean[places], **ROUNDING)
    covariance = (linear @ linear.T)[np.ix_(places, places)]
    np.testing.assert_allclose(moved @ moved.T, covariance, rtol=0, atol=1e-7)


# --- float32 ----------------------------------------------------------------------------------------------------------


def _single(model: MetaGP) -> MetaGP:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32) if eqx.is_inexact_array(leaf) else leaf, model)


@pytest.mark.parametrize("conditional", ALL, ids=NAMES)
def test_coincident_inducing_codes_stay_finite_in_float32(conditional):
    """K_uu has rank one; values and derivatives are finite all the same."""
    model = small_metagp(conditional, (2, 2), jitter=1e-6, input_kernel=RBF())

    def coincident(m: SparseGP) -> SparseGP:
        code_aux = None if m.code_aux is None else 0 * m.code_aux
        return dataclasses.replace(m, code_in=0 * m.code_in, code_out=0 * m.code_out, code_aux=code_aux)

    model = _single(with_sparse_gps(model, coincident))
    noise = jax.tree.map(lambda n: n.astype(jnp.float32), noise_of(model, 4, seed=1))

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def square(m: MetaGP) -> jax.Array:
        return jnp.mean(_outputs(m, noise, inputs(4, 2), (2, 2)) ** 2)

    value, grads = square(model)
    assert value.dtype == jnp.float32
    assert np.isfinite(value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads))


@pytest.mark.parametrize("conditional", ALL[:2], ids=NAMES[:2])
def test_variances_are_not_negative_where_inducing_codes_explain_everything(conditional):
    """Every weight's code is an inducing code: B is zero and rounding could make it less; float32."""
    model = small_metagp(conditional, (2, 3), n_inducing=9, jitter=1e-6, weight_std=1e-6)
    (weight_layer,), z = model.weight_layers, model.latents.mean
    rows_in, rows_out = np.array([(i, j) for i in weight_layer.inputs for j in weight_layer.outputs]).T
    certain = {"log_diagonal": np.full(9, -9.0), "below_diagonal": np.zeros((9, 9))}
    model = _single(
        with_sparse_gps(model, lambda m: dataclasses.replace(m, code_in=z[rows_in], code_out=z[rows_out], **certain))
    )
    noise = jax.tree.map(lambda n: n.astype(jnp.float32), noise_of(model, 50))

    @eqx.filter_jit
    def moments(m: MetaGP, h: jax.Array) -> tuple:
        return m.prepared().draw(noise).draws[0].moments(0, h, inputs(50, 2))

    mean, variance = moments(model, inputs(50, 3).astype(jnp.float32))
    assert variance.dtype == jnp.float32
    assert np.isfinite(mean).all()
    assert np.min(variance) >= 0
    assert np.min(variance) < 1e-4  # the case is what it says
