"""The parts to the left of the GP: latents, input maps, architectures, noise; and every KL of the prior."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.inference import Recipe, StepConfig, make_data, train
from metaprior.inputs import InputMap, Projection
from metaprior.kernels import RBF
from metaprior.latents import UnitLatents
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense, Network, WeightLayer
from metaprior.random import NormalCounts, draw_normals, draw_row_normals, make_key, step_key, take
from metaprior.weight_gp import Diag, Full, Pathwise, SparseGP
from metaprior.weights import MetaGP, MetaGPSpec, initial_metagp
from metaprior.weights.start import layer_groups
from small import inputs, noise_of, small_metagp

RNG = np.random.default_rng(0)
UNITS = UnitLatents(RNG.standard_normal((4, 2)), np.log(RNG.uniform(0.2, 1.5, (4, 2))))
INPUT_MAP = InputMap(
    (RNG.standard_normal((3, 2)), RNG.standard_normal((2, 3))),
    (np.log(RNG.uniform(0.2, 1.5, (3, 2))), np.log(RNG.uniform(0.2, 1.5, (2, 3)))),
    jnp.tanh,
)
SPARSE_GP = small_metagp(Diag()).sparse_gps[0]


# --- KL ---------------------------------------------------------------------------------------------------------------


def test_kl_is_zero_where_q_is_the_prior():
    units = UnitLatents(np.zeros((4, 2)), np.zeros((4, 2)))
    input_map = InputMap((np.zeros((3, 2)),), (np.zeros((3, 2)),), jnp.tanh)
    m = SPARSE_GP.n_inducing
    sparse_gp = dataclasses.replace(
        SPARSE_GP, mean=np.zeros(m), log_diagonal=np.zeros(m), below_diagonal=np.zeros((m, m))
    )
    assert units.kl() == 0
    assert input_map.kl() == 0
    assert sparse_gp.kl() == 0
    assert InputMap.identity().kl() == 0


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values) / np.sqrt(len(values)))


@pytest.mark.parametrize("part", [UNITS, INPUT_MAP, SPARSE_GP], ids=["units", "input map", "sparse GP"])
def test_kl_equals_monte_carlo(part):
    """E_q[log q - log p] over draws: with q = N(mean, R R'), log q - log p = (|draw|^2 - |normals|^2) / 2 - log |R|."""
    size = part.mean.shape[0] if isinstance(part, SparseGP) else part.num_normals
    normals = np.random.default_rng(1).standard_normal((20_000, size))
    if isinstance(part, UnitLatents):
        draws, log_det = jax.vmap(part.draw)(jnp.asarray(normals)), np.sum(part.log_std)
    elif isinstance(part, InputMap):
        draws, log_det = jax.vmap(part.draw)(jnp.asarray(normals)), sum(np.sum(s) for s in part.log_stds)
    else:
        draws, log_det = jax.vmap(part.draw)(jnp.asarray(normals)), np.sum(part.log_diagonal)
    squares = sum(np.sum(np.asarray(d).reshape(len(normals), -1) ** 2, axis=1) for d in jax.tree.leaves(draws))
    mean, error = _mean_and_error(0.5 * (squares - np.sum(normals**2, axis=1)) - log_det)
    assert abs(mean - part.kl()) < 4 * error
    assert error < 0.02 * abs(mean)


def test_kl_of_the_mapping_equals_the_dense_formula():
    """(tr S + m'm - M - log |S|) / 2."""
    factor = np.tril(SPARSE_GP.below_diagonal, -1) + np.diag(np.exp(SPARSE_GP.log_diagonal))
    covariance, mean = factor @ factor.T, SPARSE_GP.mean
    dense = 0.5 * (np.trace(covariance) + mean @ mean - len(mean) - np.linalg.slogdet(covariance)[1])
    with jax.enable_x64(True):
        np.testing.assert_allclose(SPARSE_GP.kl(), dense, rtol=1e-12)


def test_a_weight_models_kl_has_the_parts_of_its_variables():
    local = small_metagp(Diag(), input_kernel=RBF(), projection=Projection((2,)), weight_gp="per_layer")
    parts = local.kl()
    assert set(parts) == {"kl_z", "kl_u", "kl_V"}
    np.testing.assert_allclose(parts["kl_u"], sum(m.kl() for m in local.sparse_gps), rtol=1e-6)
    assert set(small_metagp(Diag()).kl()) == {"kl_z", "kl_u"}


# --- units and input maps ---------------------------------------------------------------------------------------------


def test_units_draw_has_mean_and_std():
    np.testing.assert_array_equal(UNITS.draw(jnp.zeros(8)), UNITS.mean.astype(np.float32))
    moved = UNITS.draw(jnp.ones(8)) - UNITS.mean
    np.testing.assert_allclose(moved, np.exp(UNITS.log_std), rtol=1e-5)


def test_identity_input_map_returns_the_input():
    identity, x = InputMap.identity(), inputs(5, 3)
    assert identity.num_normals == 0
    np.testing.assert_array_equal(identity(identity.draw(jnp.zeros(0)), x), x)


def test_layers_of_the_input_map_are_g_of_v_x_over_the_root_of_the_input_size():
    x, normals = inputs(5, 2), np.random.default_rng(1).standard_normal(12)
    first = INPUT_MAP.means[0] + np.exp(INPUT_MAP.log_stds[0]) * normals[:6].reshape(3, 2)
    second = INPUT_MAP.means[1] + np.exp(INPUT_MAP.log_stds[1]) * normals[6:].reshape(2, 3)
    expected = np.tanh(np.tanh(np.asarray(x) @ first.T / np.sqrt(2)) @ second.T / np.sqrt(3))
    np.testing.assert_allclose(INPUT_MAP(INPUT_MAP.draw(jnp.asarray(normals)), x), expected, atol=1e-5)


def test_projections_of_standardised_inputs_have_unit_spread_under_the_prior():
    x = np.random.default_rng(2).standard_normal((400, 50))
    maps = [InputMap.initial(50, Projection((3,)), np.random.default_rng(s)) for s in range(40)]
    squares = [np.mean(np.asarray(m([jnp.asarray(m.means[0])], jnp.asarray(x))) ** 2) for m in maps]
    mean, error = _mean_and_error(np.array(squares))
    assert abs(mean - 1) < 4 * error


@pytest.mark.parametrize("dims", [(), (0,), (2, -1)])
def test_projection_refuses_sizes_that_are_not_positive_whole_numbers(dims):
    with pytest.raises(ValueError, match="dims must be positive whole numbers"):
        Projection(dims)


# --- networks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3, 2), (5, 4, 3, 2)])
def test_dense_numbers_every_unit_once(sizes):
    network = Dense(sizes)
    inputs_of = [unit for w in network.weight_layers for unit in w.inputs]
    assert [*inputs_of, *network.weight_layers[-1].outputs] == list(range(network.num_units))
    for before, after in zip(network.weight_layers[:-1], network.weight_layers[1:], strict=True):
        assert before.outputs == after.inputs[:-1]  # the same units; the bias unit has no weights into it
    expected = [(a + 1) * b for a, b in zip(sizes[:-1], sizes[1:], strict=True)]
    assert [w.num_weights for w in network.weight_layers] == expected


@pytest.mark.parametrize("sizes", [(3,), (2, 0, 1)])
def test_dense_refuses_too_few_or_empty_layers(sizes):
    with pytest.raises(ValueError, match="at least two positive numbers"):
        Dense(sizes)


def test_dense_pushes_activations_with_the_bias_last():
    x = inputs(4, 2)
    first, second = np.asarray(inputs(3, 3, seed=1)), np.asarray(inputs(4, 2, seed=2))
    out = Dense((2, 3, 2), "tanh")([lambda h: h @ first, lambda h: h @ second], x)
    hidden = np.tanh(np.asarray(x) @ first[:2] + first[2])
    np.testing.assert_allclose(out, hidden @ second[:3] + second[3], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "groups", "local"),
    [
        ({}, ((0, 1, 2),), (False,)),
        ({"input_kernel": RBF()}, ((0, 1, 2),), (True,)),
        ({"weight_gp": "per_layer"}, ((0,), (1,), (2,)), (False, False, False)),
        ({"input_kernel": RBF(), "local_layers": (-1,)}, ((0, 1), (2,)), (False, True)),
        ({"input_kernel": RBF(), "local_layers": (0, 2)}, ((1,), (0, 2)), (False, True)),
        (
            {"input_kernel": RBF(), "local_layers": (1,), "weight_gp": "per_layer"},
            ((0,), (1,), (2,)),
            (False, True, False),
        ),
        ({"local_layers": (1,)}, ((0, 1, 2),), (False,)),
    ],
)
def test_layers_share_a_mapping_with_those_of_their_kind(options, groups, local):
    assert layer_groups(3, MetaGPSpec(**options)) == (groups, local)


def test_layer_groups_refuse_layers_and_sharing_that_are_not_there():
    with pytest.raises(ValueError, match="the network has 3 layers"):
        layer_groups(3, MetaGPSpec(input_kernel=RBF(), local_layers=(3,)))
    with pytest.raises(ValueError, match="expected 'shared' .* or 'per_layer'"):
        layer_groups(3, MetaGPSpec(weight_gp="network"))


def test_layers_of_interleaved_groups_come_back_in_order():
    model = small_metagp(Pathwise(4), (2, 3, 4, 1), input_kernel=RBF(), local_layers=(0, 2))
    weights = eqx.filter_eval_shape(
        lambda n: model.prepared().draw(n).weights(inputs(5, 2), n.rows), noise_of(model, 5)
    )
    assert [w.shape for w in weights] == [(5, 3, 3), (4, 4), (5, 5, 1)]


class Convolution(Network):
    """One convolution over a sequence, then the mean over positions: channels x offsets are units. All it takes."""

    length: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    channels: int = eqx.field(static=True)

    @property
    def num_units(self) -> int:
        return self.width + 1 + self.channels + 1 + 1

    @property
    def weight_layers(self) -> tuple[WeightLayer, ...]:
        hidden = self.width + 1
        end = hidden + self.channels + 1
        return (
            WeightLayer(range(hidden), range(hidden, hidden + self.channels), self.length - self.width + 1),
            WeightLayer(range(hidden, end), range(end, end + 1)),
        )

    def __call__(self, layers, x):
        places = np.arange(self.length - self.width + 1)[:, None] + np.arange(self.width)
        windows = x[:, places]
        hidden = jnp.tanh(layers[0](jnp.concatenate([windows, jnp.ones((*windows.shape[:2], 1), x.dtype)], -1)))
        pooled = jnp.mean(hidden, axis=1)
        return layers[1](jnp.concatenate([pooled, jnp.ones((len(x), 1), x.dtype)], axis=1))


def _convolution(conditional) -> tuple[Model, np.ndarray]:
    rng = np.random.default_rng(0)
    network, x = Convolution(length=8, width=3, channels=4), rng.standard_normal((12, 8)).astype(np.float32)
    spec = MetaGPSpec(n_inducing=4, conditional=conditional, input_kernel=RBF())
    weights = initial_metagp(spec, network.weight_layers, x, rng)
    return Model(weights, network, Gaussian(np.log(np.full(1, 0.3)))), x


def test_a_convolution_is_one_more_network_and_trains():
    model, x = _convolution(Pathwise(8))
    y = np.sin(x.sum(axis=1, keepdims=True))
    fit = train(
        model,
        make_data(x, y),
        make_key(0),
        recipe=Recipe(num_steps=1, begins=0.9),
        step_config=StepConfig(num_latent=2),
    )
    before, after = (jax.tree.leaves(eqx.filter(m.weights, eqx.is_array)) for m in (model, fit.model))
    assert np.isfinite(fit.history["elbo"]).all()
    assert all(np.abs(a - b).max() > 0 for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("conditional", [Pathwise(8), Diag(), Full()], ids=["pathwise", "diag", "full"])
def test_a_convolution_has_outputs_for_every_conditional(conditional):
    model, x = _convolution(conditional)
    noise = draw_normals(make_key(1), model.weights.sizes(), 12, 3)
    outputs = eqx.filter_eval_shape(lambda n: model.functions(model.weights.prepared(), n, jnp.asarray(x)), noise)
    assert outputs.shape == (3, 12, 1)


@pytest.mark.parametrize("conditional", [Pathwise(8), Diag()], ids=["pathwise", "diag"])
def test_a_convolution_has_the_same_weights_at_every_position(conditional):
    """Positions in another order, with the normals of theirs, give the pre-activations in that order."""
    model, x = _convolution(conditional)
    noise = jax.tree.map(lambda n: n[0], draw_normals(make_key(1), model.weights.sizes(), 3, 1))
    own = noise.rows[:, :24].reshape(3, 6, -1)  # six positions, four channels; then the last layer's
    turned = jnp.concatenate([own[:, ::-1].reshape(3, -1), noise.rows[:, 24:]], axis=1)
    windows = inputs(18, 4).reshape(3, 6, 4)

    @eqx.filter_jit
    def hidden(weights: MetaGP, rows: jax.Array, h: jax.Array) -> jax.Array:
        return weights.prepared().draw(noise).at(jnp.asarray(x[:3]), rows)[0](h)

    out = hidden(model.weights, noise.rows, windows)
    np.testing.assert_allclose(hidden(model.weights, turned, windows[:, ::-1])[:, ::-1], out, rtol=1e-4, atol=1e-5)
    assert np.std(out, axis=1).min() > 1e-3


# --- noise ------------------------------------------------------------------------------------------------------------

SIZES = NormalCounts(latents=4, weights=3, spectral=2, per_row=5)


def test_weight_draws_of_one_latent_draw_share_its_units_and_nothing_else():
    noise = draw_normals(make_key(0), SIZES, num_rows=6, num_latent=3, num_weight=2)
    assert [n.shape for n in jax.tree.leaves(noise)] == [(6, 4), (6, 3), (6, 2), (6, 6, 5)]
    units = np.asarray(noise.latents).reshape(3, 2, 4)
    np.testing.assert_array_equal(units[:, 0], units[:, 1])
    own = np.concatenate([units[:, 0].ravel(), *[np.ravel(n) for n in (noise.weights, noise.spectral, noise.rows)]])
    assert len(np.unique(own)) == len(own)


def test_noise_is_standard_normal():
    noise = draw_normals(make_key(0), NormalCounts(weights=50_000), 0, 1)
    values = np.asarray(noise.weights).ravel()
    for power, moment, spread in [(1, 0, 1), (2, 1, 2), (4, 3, 96)]:  # E[n^p] and var[n^p]
        assert abs(np.mean(values**power) - moment) < 4 * np.sqrt(spread / values.size)


def test_temperature_scales_all_but_the_frequencies():
    noise = draw_normals(make_key(0), SIZES, 2, 1)
    cold = noise.tempered(0.0)
    np.testing.assert_array_equal(cold.spectral, noise.spectral)
    assert all(np.all(np.asarray(part) == 0) for part in (cold.latents, cold.weights, cold.rows))


@pytest.mark.parametrize("shape", [(2, 2), (2, 3)], ids=["too few", "too many"])
def test_take_refuses_shapes_that_do_not_use_up_the_normals(shape):
    with pytest.raises(ValueError, match="expected shapes that use 5 normals"):
        take(jnp.zeros(5), shape)


def test_take_cuts_in_order():
    first, second = take(jnp.arange(5.0), (2,), (1, 3))
    np.testing.assert_array_equal(first, [0, 1])
    np.testing.assert_array_equal(second, [[2, 3, 4]])


def test_row_noise_follows_the_row_and_not_its_place():
    x = np.asarray(inputs(4, 2), np.float32)
    noise = draw_row_normals(make_key(0), jnp.asarray(x), 3, 5)
    order = np.array([2, 0, 3])
    np.testing.assert_array_equal(draw_row_normals(make_key(0), jnp.asarray(x[order]), 3, 5), noise[:, order])
    assert len(np.unique(noise)) == noise.size  # other rows, other draws, other normals
    assert not np.any(draw_row_normals(make_key(1), jnp.asarray(x), 3, 5) == noise)
    assert draw_row_normals(make_key(0), jnp.asarray(x), 3, 0).shape == (3, 4, 0)


def test_equal_rows_have_equal_noise_whatever_the_sign_of_their_zeros():
    noise = draw_row_normals(make_key(0), jnp.asarray([[0.0, 1.0], [-0.0, 1.0]]), 3, 5)
    np.testing.assert_array_equal(noise[:, 0], noise[:, 1])


def test_steps_draw_from_streams_that_do_not_meet():
    """No 64-bit word of one step's stream is in another's: a counter moved by a few blocks would repeat them."""
    keys = [step_key(make_key(seed), jnp.asarray(step)) for seed in (0, 1) for step in (0, 1, 2, 3000)]
    words = [np.asarray(jax.random.bits(key, (20_000,), jnp.uint32)).view(np.uint64) for key in keys]
    assert len(np.unique(np.concatenate(words))) == sum(len(w) for w in words)
    assert np.array_equal(words[0], np.asarray(jax.random.bits(make_key(0), (20_000,), jnp.uint32)).view(np.uint64))
