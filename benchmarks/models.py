"""The models that are measured, and their training steps as the library runs them."""

from collections.abc import Callable

import jax
import numpy as np
import optax

from metaprior import kernels
from metaprior.inference import Recipe, StepConfig, make_data, steps
from metaprior.inference.data import Data
from metaprior.likelihoods import Categorical, Gaussian, Likelihood
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.random import make_key
from metaprior.weight_gp import Conditional, Pathwise
from metaprior.weights import MeanField, MetaGPSpec, Point, initial_metagp

#: The number of inducing codes and the size of the latents, as in the paper.
NUM_INDUCING, LATENT_DIM = 50, 2
BATCH = 128


def images(num_rows: int = 512, num_classes: int = 10, seed: int = 0) -> Data:
    """Return random data in the shape of standardised images with labels. Times do not depend on the values."""
    rng = np.random.default_rng(seed)
    return make_data(rng.standard_normal((num_rows, 784)), rng.integers(num_classes, size=(num_rows, 1)))


def sinusoid(num_rows: int = 100, seed: int = 0) -> Data:
    """Return data of the size of the demo."""
    x = np.random.default_rng(seed).uniform(-2, 2, (num_rows, 1))
    return make_data(x, np.sin(2 * np.pi * 0.6 * x))


def metagp(
    sizes: tuple[int, ...],
    data: Data,
    likelihood: Likelihood | None = None,
    *,
    local: bool = True,
    conditional: Conditional | None = None,
    projection_dims: int | None = None,
    activation: str = "relu",
    seed: int = 0,
) -> Model:
    """Return a MetaGP, by default local in all layers."""
    from metaprior import Projection

    network = Dense(sizes, activation)
    projection = None if projection_dims is None else Projection((projection_dims,))
    spec = MetaGPSpec(
        latent_dim=LATENT_DIM,
        n_inducing=NUM_INDUCING,
        input_kernel=kernels.RBF().bound_to(projection_dims or sizes[0]) if local else None,
        projection=projection if local else None,
        conditional=Pathwise() if conditional is None else conditional,
    )
    weights = initial_metagp(spec, network.weight_layers, np.asarray(data.x), np.random.default_rng(seed))
    return Model(weights, network, likelihood or Categorical())


def mean_field(sizes: tuple[int, ...], likelihood: Likelihood | None = None, activation: str = "relu") -> Model:
    """Return a network with mean-field weights."""
    network = Dense(sizes, activation)
    return Model(MeanField.initial(network, np.random.default_rng(0)), network, likelihood or Categorical())


def point(sizes: tuple[int, ...], likelihood: Likelihood | None = None, activation: str = "relu") -> Model:
    """Return a network with point weights."""
    network = Dense(sizes, activation)
    return Model(Point.initial(network, np.random.default_rng(0)), network, likelihood or Categorical())


def gaussian() -> Likelihood:
    """Return a Gaussian likelihood for one target."""
    return Gaussian(np.log([0.1]))


def training(
    model: Model,
    data: Data,
    num_steps: int,
    draws: StepConfig,
    optimizer: optax.GradientTransformation | None = None,
) -> Callable[[], None]:
    """Return a program that makes `num_steps` steps of the library's training loop, with full random draws and KL."""
    optimizer = steps.adam_for(model) if optimizer is None else optimizer
    state = steps.start_state(model, optimizer, np.float32)
    recipe = Recipe(*[np.asarray(v, np.float32) for v in Recipe(num_steps=steps.STEP_BLOCK, begins=0.8)])
    data = jax.device_put(data)

    def call() -> None:
        new, _ = steps.step_block(
            state, make_key(0), data, recipe, np.float32(1), np.int32(num_steps), draws, optimizer, None
        )
        jax.block_until_ready(new)

    return call
