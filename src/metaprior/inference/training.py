"""Training: one compiled loop over steps, called in stretches so that progress shows and a bad turn can be undone.

The loop is compiled once for the shapes of a run; the number of steps, the data, the rates and the recipe are values.
A stretch that ends non-finite is thrown away: training goes on from the last good state with half the step.
"""

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, Key

from metaprior.inference.elbo import Batch, elbo, elbo_terms
from metaprior.inference.recipe import Recipe
from metaprior.leaves import Leaf
from metaprior.model import Model, projected, release_times
from metaprior.noise import Noise, sample_noise, step_key

#: Steps between two looks at the run from outside the compiled loop.
STRETCH = 100
#: How often a run may turn non-finite before it is given up.
MAX_RETREATS = 8


class Data(eqx.Module):
    """Rows padded to a size that is met often; `num_rows` of them, with their weights, are real."""

    x: Float[Leaf, "N D"]
    y: Float[Leaf, "N P"]
    weight: Float[Leaf, " N"]
    num_rows: Int[Leaf, ""]


class Draws(NamedTuple):
    """How many rows and draws a step takes: `batch_size` None is all rows; S of z, J of w for each."""

    batch_size: int | None = None
    num_latent: int = 4
    num_weight: int = 1


_RECIPE, _DRAWS = Recipe(), Draws()


class State(eqx.Module):
    """Where a run is."""

    model: Model
    optimiser: optax.OptState
    step: Int[Array, ""]


class Progress(NamedTuple):
    """What a listener is told after each stretch."""

    step: int
    num_steps: int
    terms: dict[str, float]
    seconds: float


class Fit(NamedTuple):
    """The end of a run: the model, the terms of every step, and what happened on the way."""

    model: Model
    history: dict[str, np.ndarray]
    num_steps: int
    retreats: int
    jitter: float
    converged: bool


#: Adam's direction; the recipe gives the rate.
ADAM = optax.flatten(optax.chain(optax.scale_by_adam(b1=0.9, b2=0.99), optax.scale(-1.0)))


def padded_size(num_rows: int) -> int:
    """Return the next size of a coarse ladder (two sizes an octave), so that growing data seldom recompile."""
    size = 16
    while size < num_rows:
        size = size * 3 // 2 if (size & (size - 1)) == 0 else size * 4 // 3
    return size


def make_data(x: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, dtype: type = np.float32) -> Data:
    """Pad rows to the ladder and give the data their type."""
    num_rows = x.shape[0]
    extra = padded_size(num_rows) - num_rows
    weight = np.ones(num_rows) if weight is None else weight
    return Data(
        np.pad(np.asarray(x, dtype), ((0, extra), (0, 0))),
        np.pad(np.asarray(y, dtype), ((0, extra), (0, 0))),
        np.pad(np.asarray(weight, dtype), (0, extra)),
        np.asarray(num_rows, np.int32),
    )


def choose_batch(key: Key[Array, ""], data: Data, batch_size: int | None) -> Batch:
    """Return all rows, or rows drawn with replacement and weighted so that sums are unbiased for the whole."""
    if batch_size is None or batch_size >= data.x.shape[0]:
        return Batch(data.x, data.y, data.weight)
    rows = jax.random.randint(key, (batch_size,), 0, data.num_rows)
    scale = data.num_rows.astype(data.weight.dtype) / batch_size
    return Batch(data.x[rows], data.y[rows], data.weight[rows] * scale)


def start_state(model: Model, optimiser: optax.GradientTransformation, dtype: DTypeLike) -> State:
    """Return the state before the first step, all leaves in one float type."""
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype) if eqx.is_inexact_array_like(leaf) else leaf, model)
    return State(model, _start_optimiser(optimiser, model), jnp.zeros((), jnp.int32))


@eqx.filter_jit
def _start_optimiser(optimiser: optax.GradientTransformation, model: Model) -> optax.OptState:
    return optimiser.init(eqx.filter(model, eqx.is_inexact_array))


def _loss(model: Model, noise: Noise, batch: Batch, num_rows: Array, kl_weight: Array) -> tuple:
    terms, jitter = elbo_terms(model, noise, batch)
    # per datum, so that rates mean the same for all sizes of data
    return -elbo(terms, kl_weight) / num_rows, {**terms, "jitter": jitter}


def one_step(
    state: State,
    key: Array,
    data: Data,
    recipe: Recipe,
    backoff: Leaf,
    draws: Draws,
    optimiser: optax.GradientTransformation,
) -> tuple[State, dict[str, Array]]:
    """Return the state after one step and the step's terms."""
    progress, dtype = recipe.progress(state.step), data.x.dtype
    key = step_key(key, state.step)
    batch = choose_batch(jax.random.fold_in(key, 1), data, draws.batch_size)
    sizes = state.model.weights.sizes()
    noise = sample_noise(key, sizes, batch.x.shape[0], draws.num_latent, draws.num_weight, dtype)
    noise = noise.tempered(recipe.temperature(progress).astype(dtype))
    kl_weight = recipe.kl_weight(progress).astype(dtype)
    grads, terms = eqx.filter_grad(_loss, has_aux=True)(state.model, noise, batch, data.num_rows, kl_weight)
    direction, optimiser_state = optimiser.update(grads, state.optimiser, state.model)
    rate = (recipe.rate(progress) * backoff).astype(dtype)
    held = jax.tree.map(lambda d, t: jnp.where(progress >= t, d, 0), direction, release_times(state.model))
    model = projected(eqx.apply_updates(state.model, jax.tree.map(lambda d: rate * d, held)))
    return State(model, optimiser_state, state.step + 1), terms


@eqx.filter_jit
def _stretch(
    state: State,
    key: Array,
    data: Data,
    recipe: Recipe,
    backoff: Leaf,
    stop: Leaf,
    draws: Draws,
    optimiser: optax.GradientTransformation,
) -> tuple[State, dict[str, Array]]:
    """Run steps up to `stop` (at most STRETCH); return the state and the terms of each."""
    arrays, static = eqx.partition(state, eqx.is_array)
    names = ["log_likelihood", *jax.eval_shape(state.model.weights.kl), "jitter"]
    records = {name: jnp.zeros(STRETCH, data.x.dtype) for name in names}

    def body(index: Array, carry: tuple) -> tuple:
        arrays, records = carry
        new, terms = one_step(eqx.combine(arrays, static), key, data, recipe, backoff, draws, optimiser)
        records = {name: records[name].at[index].set(terms[name]) for name in names}
        return eqx.filter(new, eqx.is_array), records

    arrays, records = jax.lax.fori_loop(0, stop - state.step, body, (arrays, records))
    return eqx.combine(arrays, static), records


def train(
    model: Model,
    data: Data,
    key: Key[Array, ""],
    *,
    recipe: Recipe = _RECIPE,
    draws: Draws = _DRAWS,
    optimiser: optax.GradientTransformation = ADAM,
    listener: Callable[[Progress], None] | None = None,
    stop_when: Callable[[Model, dict[str, np.ndarray]], bool] | None = None,
) -> Fit:
    """Fit a model by maximising its ELBO.

    `listener` is told after every stretch; `stop_when` is asked then, once the recipe has let everything in, whether
    the run may end early.
    """
    state = start_state(model, optimiser, data.x.dtype)
    num_steps = int(recipe.num_steps)
    values = Recipe(*[np.asarray(v, np.float32) for v in recipe])
    history: list[dict[str, np.ndarray]] = []
    backoff, retreats, converged, begun = 1.0, 0, False, time.perf_counter()
    while int(state.step) < num_steps and not converged:
        first, last = int(state.step), min(int(state.step) + STRETCH, num_steps)
        new, records = _stretch(state, key, data, values, np.float32(backoff), np.int32(last), draws, optimiser)
        if not _finite((new.model, records)):
            retreats, backoff = retreats + 1, backoff / 2
            _retreat(first, backoff, retreats)
            key = jax.random.fold_in(key, retreats)
            continue
        state = new
        history.append({name: np.asarray(value)[: last - first] for name, value in records.items()})
        if listener is not None:
            terms = {name: float(np.mean(value)) for name, value in history[-1].items()}
            listener(Progress(last, num_steps, terms, time.perf_counter() - begun))
        settled = last / num_steps >= max(float(recipe.noise_full), float(recipe.kl_full))
        if stop_when is not None and settled:
            converged = stop_when(state.model, joined(history))
    terms_by_step = joined(history)
    jitter = float(np.max(terms_by_step.pop("jitter"), initial=0.0))
    _report_jitter(state.model, jitter)
    return Fit(state.model, terms_by_step, int(state.step), retreats, jitter, converged)


def joined(history: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return every term as one array over steps, the ELBO (with its KL in full) among them."""
    if not history:
        return {"jitter": np.zeros(0), "elbo": np.zeros(0)}
    terms = {name: np.concatenate([part[name] for part in history]) for name in history[0]}
    total = sum(value for name, value in terms.items() if name.startswith("kl_"))
    return {**terms, "elbo": terms["log_likelihood"] - total}


def _finite(tree: object) -> bool:
    # in NumPy: in the compiled program every leaf's check would cost compile time
    return all(np.isfinite(np.asarray(leaf)).all() for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)))


class ConvergenceTrouble(UserWarning):
    """A run met a numerical difficulty and dealt with it."""


def _retreat(step: int, backoff: float, retreats: int) -> None:
    if retreats > MAX_RETREATS:
        raise FloatingPointError(
            f"training turned non-finite {retreats} times near step {step}, even with the step size cut to "
            f"{backoff:g} of its start; lower the learning rate, look for extreme values in the data, or take "
            "dtype='float64'."
        )
    warnings.warn(
        f"training turned non-finite after step {step}; going on from there with {backoff:g} of the step size.",
        ConvergenceTrouble,
        stacklevel=3,
    )


def _report_jitter(model: Model, jitter: float) -> None:
    start = getattr(model.weights, "start_jitter", jitter)
    if jitter > 1.5 * start:
        warnings.warn(
            f"a Cholesky factor needed a relative jitter of {jitter:g} (usual: {start:g}); inducing codes may "
            "coincide: fewer of them, or dtype='float64', would help.",
            ConvergenceTrouble,
            stacklevel=3,
        )
