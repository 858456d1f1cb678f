"""Layers of different kinds: mean-field below, a MetaGP above."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import metaprior
from metaprior import MetaGPClassifier, MetaGPRegressor
from metaprior.kernels import RBF
from metaprior.multitask import MultiTaskRegressor
from metaprior.networks import Dense
from metaprior.random import StandardNormals, draw_normals
from metaprior.weights import MeanField, MetaGP, MetaGPSpec, Mixed, initial_mixed, metagp_of
from metaprior.weights.start import renumbered

NETWORK = Dense((2, 5, 4, 3), "tanh")
X = np.random.default_rng(0).standard_normal((6, 2)).astype(np.float32)
SMALL = {"hidden_layer_sizes": (4,), "n_inducing": 5, "max_iter": 30, "n_predict_draws": 8, "random_state": 0}


def mixed(below=(0, 1), both=(), **spec) -> Mixed:
    spec = MetaGPSpec(n_inducing=7, **spec)
    return jax.tree.map(jnp.asarray, initial_mixed(spec, NETWORK, below, X, np.random.default_rng(1), both))


@pytest.mark.parametrize("below", [(0, 1), (0, 2)])
def test_layers_come_from_their_parts_and_in_the_network_s_order(below):
    """The twin multiplies explicit weights of the two parts, drawn from their shares of the normals."""
    model = mixed(below).for_prediction()
    sizes = model.sizes()
    noise = jax.tree.map(lambda a: a[0], draw_normals(jax.random.key(2), sizes, len(X), 1))
    draw = model.prepared().draw(noise)
    weights = draw.weights(jnp.asarray(X), noise.rows)
    assert [w.shape[-2:] for w in weights] == [(3, 5), (6, 4), (5, 3)]
    h = X
    for number, weight in enumerate(weights):
        h = np.concatenate([h, np.ones((len(h), 1))], axis=1) @ np.asarray(weight)
        h = np.tanh(h) if number < 2 else h
    np.testing.assert_allclose(draw.outputs(NETWORK, jnp.asarray(X), noise.rows), h, rtol=2e-4, atol=2e-4)
    field, gp = model.parts
    normals = np.split(np.asarray(noise.weights), [field.sizes().weights])[0]
    expected, start = [], 0
    for mean, log_std in zip(field.means, field.log_stds, strict=True):
        own = normals[start : start + mean.size].reshape(mean.shape)
        expected.append(mean + np.exp(log_std) * own)
        start += mean.size
    for layer, weight in zip(below, expected, strict=True):
        np.testing.assert_allclose(weights[layer], weight, rtol=1e-5)


@pytest.mark.parametrize("predicting", [True, False])
def test_a_layer_of_both_parts_is_their_sum(predicting):
    """The twin: each part drawn alone from its share of the normals, its layers pushed and added by hand."""
    model = mixed((0,), both=(2,), input_kernel=RBF())
    model = model.for_prediction() if predicting else model
    noise = jax.tree.map(lambda a: a[0], draw_normals(jax.random.key(3), model.sizes(), len(X), 1))
    field, gp = model.parts
    assert model.layers == ((0, 2), (1, 2))
    parts, start = [], np.zeros(4, int)
    for part in (field, gp):
        stop = start + np.array(part.sizes())
        cut = [
            getattr(noise, name)[a:b]
            for name, a, b in zip(("latents", "weights", "spectral"), start, stop, strict=False)
        ]
        rows = noise.rows[:, start[3] : stop[3]]
        parts.append(part.prepared().draw(StandardNormals(*cut, rows)).at(jnp.asarray(X), rows))
        start = stop
    (below, own), (middle, smooth) = parts
    ones, h = np.ones((len(X), 1), np.float32), jnp.asarray(X)
    for layer in (below, middle):
        h = jnp.tanh(layer(jnp.concatenate([h, ones], 1)))
    h = jnp.concatenate([h, ones], 1)
    found = model.prepared().draw(noise).outputs(NETWORK, jnp.asarray(X), noise.rows)
    np.testing.assert_allclose(found, own(h) + smooth(h), rtol=1e-5, atol=1e-6)


def test_the_parts_kl_and_normals_add():
    model = mixed()
    field, gp = model.parts
    assert model.kl().keys() == {"kl_w", "kl_z", "kl_u"}
    total = sum(float(v) for part in (field, gp) for v in part.kl().values())
    assert sum(float(v) for v in model.kl().values()) == pytest.approx(total, rel=1e-6)
    assert model.sizes() == tuple(np.add(field.sizes(), gp.sizes()))


def test_the_gp_has_latents_for_the_units_of_its_own_layers_only():
    assert mixed((0,)).parts[1].latents.mean.shape[0] == 5 + 1 + 4 + 1 + 3
    assert mixed((0, 1)).parts[1].latents.mean.shape[0] == 4 + 1 + 3
    assert mixed((1,)).parts[1].latents.mean.shape[0] == (2 + 1 + 5) + (4 + 1 + 3)


def test_renumbering_all_layers_changes_nothing():
    assert renumbered(NETWORK.weight_layers) == NETWORK.weight_layers


def test_the_paper_s_network_for_images_can_be_written_down():
    """Mean-field below, MetaGP-local on the last layer, k_aux on a projection."""
    labels = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    model = MetaGPClassifier(mean_field_layers=[0], input_kernel="rbf", input_projection=2, **SMALL).fit(X, labels)
    weights = model.model_.weights
    assert [type(part) for part in weights.parts] == [MeanField, MetaGP]
    assert weights.parts[1].output.local
    assert weights.layers == ((0,), ())
    assert metagp_of(weights) is weights.parts[1]
    assert set(model.elbo_terms_) >= {"kl_w", "kl_z", "kl_f", "kl_V"}
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.slow
def test_local_layers_are_counted_in_the_whole_network():
    options = {**SMALL, "hidden_layer_sizes": (4, 3), "input_kernel": RBF(), "local_layers": (-1,)}
    model = MetaGPRegressor(mean_field_layers=[0], output_layer="drawn", **options).fit(X, X[:, 0])
    gp = metagp_of(model.model_.weights)
    assert [gp.groups[g] for g, is_local in enumerate(gp.local) if is_local] == [(1,)]


@pytest.mark.slow
def test_a_mixed_model_saves_loads_and_goes_on(tmp_path):
    model = MetaGPRegressor(mean_field_layers=[0], warm_start=True, **SMALL, input_kernel=None).fit(X, X[:, 0])
    model.save(tmp_path / "m.metaprior")
    loaded = metaprior.load(tmp_path / "m.metaprior")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.fit(X, X[:, 0]).predict(X), model.fit(X, X[:, 0]).predict(X))


@pytest.mark.slow
def test_draws_of_a_mixed_model_are_the_same_row_by_row():
    model = MetaGPRegressor(mean_field_layers=[0], conditional="fitc", **SMALL, input_kernel=None).fit(X, X[:, 0])
    together = model.predict(X)
    np.testing.assert_allclose([model.predict(row[None])[0] for row in X], together, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mean_field_layers": [2]}, "mean_field_layers: the network has 2 layers of weights .*; got"),
        ({"mean_field_layers": [0.5]}, "mean_field_layers: the network has 2 layers of weights .*; got"),
        ({"residual_layers": "both"}, "residual_layers: the network has 2 layers of weights .*; got 'both'"),
        ({"mean_field_layers": [0, 1]}, "expected a layer to be left for the GP; got all 2"),
        (
            {"mean_field_layers": [0], "local_layers": [0], "input_kernel": "rbf"},
            r"local_layers: expected layers that have the GP, of \[1\]; got \[0\]",
        ),
        (
            {"mean_field_layers": [0], "residual_layers": [0]},
            r"residual_layers: expected layers that have the GP, of \[1\]; got \[0\]",
        ),
    ],
)
def test_layers_that_are_not_there_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        MetaGPRegressor(**SMALL, **{"input_kernel": None, **options}).fit(X, X[:, 0])


@pytest.mark.parametrize(("below", "own"), [(None, [0, 1]), ([0], [1])])
def test_all_residual_layers_are_those_that_have_the_gp(below, own):
    named, all_of_them = (
        MetaGPRegressor(mean_field_layers=below, residual_layers=layers, **SMALL).fit(X, X[:, 0])
        for layers in (own, "all")
    )
    assert all_of_them.model_.weights.layers == ((0, 1), tuple(own))
    np.testing.assert_array_equal(all_of_them.predict(X), named.predict(X))


@pytest.mark.parametrize("name", ["mean_field_layers", "residual_layers"])
def test_tasks_share_latents_so_no_layer_may_be_without(name):
    with pytest.raises(ValueError, match=f"{name}: expected None"):
        MultiTaskRegressor(**{name: [0]}, **SMALL).fit({"a": (X, X[:, 0])})
