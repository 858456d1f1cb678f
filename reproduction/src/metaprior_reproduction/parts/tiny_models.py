"""Networks small enough for NUTS: truths from their prior in plain NumPy, posteriors by NUTS and by the bound.

A replicate is a truth drawn from the prior, with data drawn from it; one program computes many replicates side by
side. The truth is computed without the library's models, so that an error in those becomes visible.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array
from numpy.typing import DTypeLike

from metaprior.compilation import as_float64, compilation_cache, compiled, in_float64
from metaprior.estimators.metagp_prior import JITTER as JITTERS
from metaprior.inference import ADAM, ALL_AT_ONCE, Batch, Data, Recipe, StepConfig, train_many
from metaprior.inference.nuts import Settings, nuts_kernel, require_numpyro, split
from metaprior.kernels import RBF
from metaprior.likelihoods import Gaussian
from metaprior.model import Model
from metaprior.networks import Dense
from metaprior.output_layer import Exact, FunctionGP
from metaprior.predictive.draws import joint_functions
from metaprior.random import StandardNormals, draw_shared_normals, make_key
from metaprior.weight_gp import WeightNoise, conditional_named
from metaprior.weights import HierarchicalMetaGP, MetaGPSpec, initial_metagp
from metaprior.weights.hierarchical import JITTER, WEIGHT_NOISE

#: Draws of the latents in a step of training.
NUM_TRAIN_DRAWS = 4
#: Chains that run in one batch: as many as fit in the cache of a core.
SIDE_BY_SIDE = 10


@dataclasses.dataclass(frozen=True)
class Tiny:
    """A hierarchical model, the inputs of its data, and the inputs at which its functions are compared.

    Lengthscales over latents are 1; scales and weight noise are those that training starts from. With `whole`, these
    and the observation noise are unknown and have the priors that the sampler gives them.
    """

    sizes: tuple[int, ...]
    latent_dim: int
    x: tuple[float, ...]
    x_test: tuple[float, ...]
    noise: float
    input_lengthscale: float | None = None
    whole: bool = False

    @property
    def network(self) -> Dense:
        """The architecture."""
        return Dense(self.sizes)

    @property
    def input_kernel(self) -> RBF | None:
        """The input kernel; None if the model is global."""
        scale = self.input_lengthscale
        return None if scale is None else RBF(scale, fixed=("lengthscale",)).bound_to(1)


class Unknowns(NamedTuple):
    """Everything that is drawn from the prior, whitened as the sampler sees it."""

    z: np.ndarray
    values: np.ndarray
    noise: np.ndarray
    log_lengthscale_in: np.ndarray
    log_lengthscale_out: np.ndarray
    log_scale: np.ndarray
    log_weight_noise: float
    log_noise: float

    def hypers(self) -> np.ndarray:
        """Return the hyper-parameters and the observation noise in one vector."""
        parts = (self.log_lengthscale_in, self.log_lengthscale_out, self.log_scale.ravel())
        return np.concatenate([*parts, [self.log_weight_noise, self.log_noise]])


class Truth(NamedTuple):
    """A function at the data and at the test inputs, its observations, and the other unknowns."""

    f: np.ndarray
    f_test: np.ndarray
    y: np.ndarray
    y_test: np.ndarray
    log_noise: np.ndarray
    hypers: np.ndarray


class Posterior(NamedTuple):
    """Draws for every replicate: functions at the data and the test inputs [R, S, .], hyper-parameters; diagnostics."""

    f: np.ndarray
    f_test: np.ndarray
    hypers: np.ndarray
    told: Mapping[str, float]


# --- the prior, in plain NumPy ------------------------------------------------------------


def drawn_truth(tiny: Tiny, rng: np.random.Generator) -> Truth:
    """Draw unknowns from the prior, and data from the function that they define."""
    x = np.array([*tiny.x, *tiny.x_test])
    unknowns = drawn_unknowns(tiny, len(x), rng)
    f = function_values(tiny, unknowns, x)
    y = f + np.exp(unknowns.log_noise) * rng.standard_normal(len(x))
    num = len(tiny.x)
    hypers = unknowns.hypers() if tiny.whole else np.zeros(0)
    return Truth(f[:num], f[num:], y[:num], y[num:], np.asarray(unknowns.log_noise), hypers)


def drawn_unknowns(tiny: Tiny, num_rows: int, rng: np.random.Generator) -> Unknowns:
    """Draw the unknowns; if not known, hyper-parameters are log-normal and the observation noise is half-normal."""
    network, spread = tiny.network, float(tiny.whole)
    num_weights = sum(weight_layer.num_weights for weight_layer in network.weight_layers)
    centre = np.array([[-0.5 * np.log(len(weight_layer.inputs) - 1), 0.0] for weight_layer in network.weight_layers])
    return Unknowns(
        rng.standard_normal((network.num_units, tiny.latent_dim)),
        rng.standard_normal((num_weights, 1 if tiny.input_lengthscale is None else num_rows)),
        rng.standard_normal(num_weights),
        spread * rng.standard_normal(tiny.latent_dim),
        spread * rng.standard_normal(tiny.latent_dim),
        centre + spread * rng.standard_normal(centre.shape),
        float(np.log(WEIGHT_NOISE) + spread * rng.standard_normal()),
        float(np.log(np.abs(rng.standard_normal()) if tiny.whole else tiny.noise)),
    )


def function_values(tiny: Tiny, unknowns: Unknowns, x: np.ndarray) -> np.ndarray:
    """Return the network's output at every input, from all its weights: [W, R], one column per input."""
    weight_layers, z = tiny.network.weight_layers, unknowns.z
    ends = [
        (weight_layer, i, j)
        for weight_layer in weight_layers
        for i in weight_layer.inputs
        for j in weight_layer.outputs
    ]
    z_in, z_out = (np.array([z[end[side]] for end in ends]) for side in (1, 2))
    root = _root(z_in / np.exp(unknowns.log_lengthscale_in), z_out / np.exp(unknowns.log_lengthscale_out))
    values = unknowns.values
    if tiny.input_lengthscale is not None:
        values = values @ _root(x[:, None] / tiny.input_lengthscale).T
    level = np.array([unknowns.log_scale[weight_layers.index(w), int(i == w.inputs[-1])] for w, i, _ in ends])
    own = np.exp(unknowns.log_weight_noise) * unknowns.noise
    weights = np.exp(level)[:, None] * (root @ values + own[:, None])
    return _pushed(tiny, np.broadcast_to(weights, (len(ends), len(x))), x)


def _root(*blocks: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor of the product of unit RBF kernels over scaled points."""
    squares = sum(np.sum((block[:, None] - block[None]) ** 2, axis=-1) for block in blocks)
    return np.linalg.cholesky(np.exp(-0.5 * squares) + JITTER * np.eye(len(blocks[0])))


def _pushed(tiny: Tiny, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    h, start = x[:, None], 0
    for number, weight_layer in enumerate(tiny.network.weight_layers):
        own = weights[start : start + weight_layer.num_weights].reshape(
            len(weight_layer.inputs), len(weight_layer.outputs), len(x)
        )
        h = np.einsum("ri,ijr->rj", np.column_stack([h, np.ones(len(x))]), own)
        h = np.tanh(h) if number < len(tiny.network.weight_layers) - 1 else h
        start += weight_layer.num_weights
    return h[:, 0]


# --- NUTS ---------------------------------------------------------------------------------


def hierarchical_model(tiny: Tiny, rng: np.random.Generator) -> Model:
    """Return the model that NUTS samples, its unknowns drawn from the prior."""
    x = np.array(tiny.x)[:, None]
    weights = HierarchicalMetaGP.initial(tiny.network, tiny.latent_dim, RBF(), tiny.input_kernel, x, rng)
    return Model(weights, tiny.network, Gaussian(np.log([tiny.noise]), learned=tiny.whole))


def sampled_part(tiny: Tiny, model: Model) -> tuple[Model, Model]:
    """Return what NUTS samples and the rest; hyper-parameters are sampled only if they are unknown."""
    if tiny.whole:
        return split(model)
    held = jax.tree.map(lambda _: False, model)
    moved = eqx.tree_at(lambda m: (m.weights.z, m.weights.values, m.weights.noise_normals), held, (True, True, True))
    return eqx.partition(model, moved)


def sampled(tiny: Tiny, truths: Sequence[Truth], settings: Settings, seed: int) -> Posterior:
    """Run one chain per replicate, all in one program, each from its own draw from the prior."""
    require_numpyro()
    starts = [hierarchical_model(tiny, np.random.default_rng([seed, number, 1])) for number in range(len(truths))]
    with in_float64():
        positions = _stacked([sampled_part(tiny, as_float64(model))[0] for model in starts])
        rest = sampled_part(tiny, as_float64(starts[0]))[1]
        batches = _stacked([Batch(own.x, own.y, own.weight) for own in _data(tiny, truths, np.float64)])
        keys = jax.random.split(jax.random.key(seed), len(truths))
        x_test = jnp.asarray(tiny.x_test, jnp.float64)[:, None]
        seen = [np.asarray(part) for part in _chains(positions, rest, batches, keys, x_test, settings)]
    f, f_test, hypers, diverging, steps = seen
    told = {"divergent": float(np.mean(diverging)), "tree": float(np.mean(steps))}
    return Posterior(f, f_test, hypers[..., : truths[0].hypers.size], told)


@compiled
def _chains(
    positions: Model, rest: Model, batches: Batch, keys: Array, x_test: Array, settings: Settings
) -> tuple[Any, ...]:
    arrays, static = eqx.partition(rest, eqx.is_array)
    begin, step = nuts_kernel(static, settings)

    def one(own: tuple[Model, Batch, Array]) -> tuple[Any, ...]:
        position, batch, key = own
        args, (first, last) = (batch, arrays), jax.random.split(key)

        def visit(state: Any, key: Array) -> tuple[Any, ...]:
            state = step(state, args)
            model = eqx.combine(state.z, rest)
            functions = _values(model, jnp.asarray(batch.x), key), _values(_predicting(model), x_test, key)
            return state, (*functions, _hypers(model), state.diverging, state.num_steps)

        state = jax.lax.fori_loop(0, settings.n_warmup, lambda _, s: step(s, args), begin(position, first, args))
        return jax.lax.scan(visit, state, jax.random.split(last, settings.n_samples))[1]

    return jax.lax.map(one, (positions, batches, keys), batch_size=SIDE_BY_SIDE)


def _values(model: Model, x: Array, key: Array) -> Array:
    """Return the function of a state; what the state of a local model leaves open is drawn jointly over the inputs."""
    none = jnp.zeros((1, 0), x.dtype)
    rows = jax.random.normal(key, (1, x.shape[0], model.weights.sizes().per_row), x.dtype)
    return model.functions(model.weights.prepared(), StandardNormals(none, none, none, rows), x)[0, :, 0]


def _predicting(model: Model) -> Model:
    return dataclasses.replace(model, weights=model.weights.for_prediction())


def _hypers(model: Model) -> Array:
    """Return the hyper-parameters and the observation noise in the order of `Unknowns.hypers`."""
    weights: Any = model.weights
    parts = (weights.kernel_in.log_lengthscale, weights.kernel_out.log_lengthscale, weights.log_scale)
    noise: Any = model.likelihood
    return jnp.concatenate([jnp.ravel(p) for p in (*parts, weights.log_weight_noise, noise.log_noise)])


# --- the variational posterior ------------------------------------------------------------


#: The name of the posterior with an integrated output layer and anchored codes; other names are conditionals.
INTEGRATED = "integrated"


class Fitting(NamedTuple):
    """How the variational posterior is found: training steps, inducing codes, and functions drawn from it."""

    num_steps: int
    n_inducing: int
    num_draws: int


def variational_model(tiny: Tiny, conditional: str, n_inducing: int, rng: np.random.Generator) -> Model:
    """Return the start of a variational posterior over the same unknowns, with the same hyper-parameters."""
    spec = MetaGPSpec(
        latent_dim=tiny.latent_dim,
        n_inducing=n_inducing,
        kernel_in=RBF(1.0, fixed=("lengthscale",)),
        kernel_out=RBF(1.0, fixed=("lengthscale",)),
        input_kernel=tiny.input_kernel,
        conditional=conditional_named("pathwise" if conditional == INTEGRATED else conditional),
        jitter=JITTERS["float64" if conditional == INTEGRATED else "float32"],
        integrated=conditional == INTEGRATED,
    )
    weights = initial_metagp(spec, tiny.network.weight_layers, np.array(tiny.x)[:, None], rng)
    known = WeightNoise.initial(tiny.latent_dim, std=WEIGHT_NOISE)
    weights = dataclasses.replace(weights, weight_noise=known)
    likelihood = Gaussian(np.log([tiny.noise]), learned=False)
    if weights.output is None:
        return Model(weights, tiny.network, likelihood)
    output = dataclasses.replace(weights.output, weight_noise=known)
    return Model(dataclasses.replace(weights, output=output), tiny.network, likelihood, Exact())


def _is_known(model: Model) -> Model:
    """Return which leaves training must not change, besides the fixed ones: scales and weight noise."""
    weights: Any = model.weights
    known, noises = jax.tree.map(lambda _: False, model), 1 if weights.output is None else 2

    def held(model: Any) -> list[Any]:
        own = model.weights
        return [own.log_scale, own.weight_noise.log_std, *([own.output.weight_noise.log_std] if noises == 2 else [])]

    return eqx.tree_at(held, known, [True] * (1 + noises))


#: Adam that changes the posterior and no hyper-parameter.
POSTERIOR_ONLY = optax.chain(ADAM, optax.masked(optax.set_to_zero(), _is_known))


def fitted(tiny: Tiny, truths: Sequence[Truth], conditional: str, fitting: Fitting, seed: int) -> Posterior:
    """Train the posterior of every replicate with the usual recipe and precision, and draw from it."""
    if tiny.whole:
        raise ValueError("fitted: expected a model with known hyper-parameters; got whole=True, which needs `sampled`.")
    rngs = [np.random.default_rng([seed, number, 2]) for number in range(len(truths))]
    models = [variational_model(tiny, conditional, fitting.n_inducing, rng) for rng in rngs]
    recipe, integrated = Recipe(num_steps=fitting.num_steps), conditional == INTEGRATED
    with compilation_cache(), jax.enable_x64(integrated):
        fits = train_many(
            models,
            _data(tiny, truths, np.float64 if integrated else np.float32),
            [make_key(int(rng.integers(2**31 - 1))) for rng in rngs],
            recipe=recipe._replace(**ALL_AT_ONCE) if integrated else recipe,
            step_config=StepConfig(num_latent=NUM_TRAIN_DRAWS),
            optimizer=POSTERIOR_ONLY,
        )
    with in_float64():
        stacked = _stacked([as_float64(fit.model) for fit in fits])
        keys = jax.random.split(jax.random.key(seed), len(truths))
        x = jnp.asarray([*tiny.x, *tiny.x_test], jnp.float64)[:, None]
        batches = _stacked(
            [Batch(*map(jnp.asarray, (own.x, own.y, own.weight))) for own in _data(tiny, truths, np.float64)]
        )
        f = np.asarray(_functions(stacked, keys, x, batches, fitting.num_draws))
    last = max(1, fitting.num_steps // 10)
    told = {"elbo": float(np.mean([fit.history["elbo"][-last:] for fit in fits]))}
    at_data, elsewhere = np.split(f, [len(tiny.x)], axis=-1)
    return Posterior(at_data, elsewhere, np.zeros((*f.shape[:2], 0)), told)


@compiled
def _functions(models: Model, keys: Array, x: Array, batches: Batch, num_draws: int) -> Array:
    arrays, static = eqx.partition(models, eqx.is_array)

    def one(parts: tuple[Model, Array, Batch]) -> Array:
        model = eqx.combine(parts[0], static)
        if model.output is not None:
            return _integrated_functions(model, parts[1], x, parts[2], num_draws)
        return joint_functions(model, parts[1], x, num_draws, False, False)[..., 0]

    return jax.lax.map(one, (arrays, keys, batches))


def _integrated_functions(model: Model, key: Array, x: Array, batch: Batch, num_draws: int) -> Array:
    """Return functions from the posterior, each with its own draw of everything below the output layer."""
    assert model.output is not None
    prepared, output = model.weights.prepared(), model.output.with_rows(batch)
    below, above = jax.random.split(key)
    noise = draw_shared_normals(below, model.weights.sizes(), num_draws, x.dtype)

    def one(parts: tuple[StandardNormals, Array]) -> Array:
        gp = FunctionGP.of(prepared.draw(parts[0]), model.network)
        posterior = output.conditioned(gp, model.likelihood)
        normals = jax.random.normal(parts[1], (posterior.num_normals(),), x.dtype)
        return posterior.function(normals)(x)[:, 0]

    return jax.lax.map(one, (noise, jax.random.split(above, num_draws)))


def _data(tiny: Tiny, truths: Sequence[Truth], dtype: DTypeLike) -> list[Data]:
    x, ones = np.array(tiny.x, dtype)[:, None], np.ones(len(tiny.x), dtype)
    return [Data(x, truth.y[:, None].astype(dtype), ones, np.asarray(len(x), np.int32)) for truth in truths]


def _stacked(trees: Sequence[Any]) -> Any:
    def join(*leaves: Any) -> Any:
        return jnp.stack(leaves) if eqx.is_array_like(leaves[0]) else leaves[0]

    return jax.tree.map(join, *trees)
