"""A convolution is one more network: all it takes, and what the weight models make of it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from metaprior.inference import Recipe, StepConfig, make_data, train
from metaprior.kernels import RBF
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Network, WeightLayer
from metaprior.random import draw_normals, make_key
from metaprior.weight_gp import Diag, Full, Pathwise
from metaprior.weights import MetaGP, MetaGPSpec, initial_metagp
from small import inputs


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
