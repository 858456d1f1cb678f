"""The compiled part of training: a step, a block of steps, and the same block for many runs side by side.

It is compiled once for the shapes of a run; the number of steps, the data, the rates and the recipe are values.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh
from jax.typing import DTypeLike
from jaxtyping import Array, Int, PyTree

from metaprior.compilation import compiled
from metaprior.inference.data import Data, StepConfig, choose_batch
from metaprior.inference.devices import cut_by_rows, made_whole
from metaprior.inference.elbo import Batch, elbo, elbo_terms
from metaprior.inference.recipe import Recipe
from metaprior.model import Model, projected, release_times, step_factors
from metaprior.random import StandardNormals, draw_normals, step_key
from metaprior.types import Leaf

#: Steps between two looks at the run from outside the compiled loop.
STEP_BLOCK = 100
#: Adam's direction; the recipe gives the rate. In one flat vector: small networks have many small leaves.
ADAM = optax.flatten(optax.chain(optax.scale_by_adam(b1=0.9, b2=0.99), optax.scale(-1.0)))
#: The same, a leaf at a time, for models whose leaves are large: joining and cutting them would cost more.
ADAM_BY_LEAF = optax.chain(optax.scale_by_adam(b1=0.9, b2=0.99), optax.scale(-1.0))
#: Numbers of a model beyond which Adam goes leaf by leaf.
LARGE = 300_000


def adam_for(model: Model) -> optax.GradientTransformation:
    """Return the form of Adam that is quicker for a model's size."""
    size = sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))
    return ADAM if size <= LARGE else ADAM_BY_LEAF


class State(eqx.Module):
    """Where a run is."""

    model: Model
    optimizer: PyTree
    step: Int[Array, ""]


def start_state(model: Model, optimizer: optax.GradientTransformation, dtype: DTypeLike) -> State:
    """Return the state before the first step, all leaves in one float type."""
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype) if eqx.is_inexact_array_like(leaf) else leaf, model)
    return State(model, _start_optimizer(optimizer, model), jnp.zeros((), jnp.int32))


@compiled
def _start_optimizer(optimizer: optax.GradientTransformation, model: Model) -> PyTree:
    return optimizer.init(eqx.filter(model, eqx.is_inexact_array))


def _loss(
    model: Model, normals: StandardNormals, batch: Batch, num_rows: Leaf, kl_weight: Array
) -> tuple[Array, dict[str, Array]]:
    terms, jitter = elbo_terms(model, normals, batch)
    # per datum, so that rates mean the same for all sizes of data
    return -elbo(terms, kl_weight) / num_rows, {**terms, "jitter": jitter}


def one_step(
    state: State,
    key: Array,
    data: Data,
    recipe: Recipe,
    backoff: Leaf,
    step_config: StepConfig,
    optimizer: optax.GradientTransformation,
    mesh: Mesh | None,
) -> tuple[State, dict[str, Array]]:
    """Return the state after one step and the step's terms."""
    progress, dtype = recipe.progress(state.step), data.x.dtype
    key = step_key(key, state.step)
    batch = cut_by_rows(choose_batch(key, data, step_config.batch_size), mesh)
    sizes = state.model.sizes()
    normals = draw_normals(key, sizes, batch.x.shape[0], step_config.num_latent, step_config.num_weight, dtype)
    normals = normals.tempered(recipe.temperature(progress).astype(dtype))
    kl_weight = recipe.kl_weight(progress).astype(dtype)
    grads, terms = eqx.filter_grad(_loss, has_aux=True)(state.model, normals, batch, data.num_rows, kl_weight)
    direction, optimizer_state = optimizer.update(grads, state.optimizer, state.model)
    rate = (recipe.rate(progress) * backoff).astype(dtype)
    times, factors = release_times(state.model), step_factors(state.model)
    steps = jax.tree.map(lambda d, t, f: jnp.where(progress >= t, rate * f * d, 0), direction, times, factors)
    model = projected(eqx.apply_updates(state.model, steps))
    return State(model, optimizer_state, state.step + 1), terms


def _step_block(
    state: State,
    key: Array,
    data: Data,
    recipe: Recipe,
    backoff: Leaf,
    stop: Leaf,
    step_config: StepConfig,
    optimizer: optax.GradientTransformation,
    mesh: Mesh | None = None,
) -> tuple[State, dict[str, Array]]:
    """Run steps up to `stop` (at most STEP_BLOCK); return the state and the terms of each."""
    arrays, static = eqx.partition(state, eqx.is_array)
    names = _names_of_terms(state.model, data, step_config)
    records = {name: jnp.zeros(STEP_BLOCK, data.x.dtype) for name in names}

    def body(index: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
        arrays, records = carry
        new, terms = one_step(eqx.combine(arrays, static), key, data, recipe, backoff, step_config, optimizer, mesh)
        records = {name: records[name].at[index].set(terms[name]) for name in names}
        return eqx.filter(new, eqx.is_array), records

    arrays, records = jax.lax.fori_loop(0, stop - state.step, body, (arrays, records))
    return eqx.combine(made_whole(arrays, mesh), static), made_whole(records, mesh)


def _names_of_terms(model: Model, data: Data, step_config: StepConfig) -> list[str]:
    """Return the names of the terms of a step, in order."""
    normals = jax.eval_shape(lambda: draw_normals(jax.random.key(0), model.sizes(), data.x.shape[0], 1))
    batch = Batch(data.x, data.y, data.weight)
    terms = eqx.filter_eval_shape(lambda model, normals: elbo_terms(model, normals, batch)[0], model, normals)
    return [*terms, "jitter"]


step_block = compiled(_step_block)


@compiled
def step_block_of_many(
    states: State,
    keys: Array,
    data: Data,
    recipe: Recipe,
    backoffs: Leaf,
    stop: Leaf,
    step_config: StepConfig,
    optimizer: optax.GradientTransformation,
) -> tuple[State, dict[str, Array]]:
    """Run a block of steps of many runs, stacked along a leading axis; they share the number of the step."""
    parts, static = eqx.partition((states.model, states.optimizer), eqx.is_array)

    def one(own: tuple[Any, ...], key: Array, data: Data, backoff: Leaf) -> tuple[tuple[Any, ...], dict[str, Array]]:
        model, moments = eqx.combine(own, static)
        state = State(model, moments, states.step)
        new, records = _step_block(state, key, data, recipe, backoff, stop, step_config, optimizer)
        return eqx.filter((new.model, new.optimizer), eqx.is_array), records

    parts, records = jax.vmap(one)(parts, keys, data, backoffs)
    model, moments = eqx.combine(parts, static)
    return State(model, moments, jnp.asarray(stop, jnp.int32)), records


def stacked_states(states: Sequence[State]) -> State:
    """Return runs that are at the same step as one state with a leading axis; the step has none."""
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves) if eqx.is_array(leaves[0]) else leaves[0], *states)
    return eqx.tree_at(lambda s: s.step, stacked, states[0].step)


def state_of(states: State, index: int) -> State:
    """Return one run of a stacked state."""
    take = partial(jax.tree.map, lambda leaf: leaf[index] if eqx.is_array(leaf) else leaf)
    return State(take(states.model), take(states.optimizer), states.step)
