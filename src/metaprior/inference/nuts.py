"""NUTS on the log joint density of a model whose every quantity is a point: weights, latents, hyper-parameters.

For such a weight model the ELBO is the log joint density (its "KL" is -log prior), so the sampler sees what training
sees, plus the prior of what the likelihood learns. The chains run side by side in one compiled program that takes the
data as values; the sampler's own steps are NumPyro's (an extra: it is imported here and nowhere else).
"""

import importlib.util
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from metaprior.compilation import compiled
from metaprior.extras import missing_library
from metaprior.inference.data import Data
from metaprior.inference.elbo import Batch, elbo, elbo_terms
from metaprior.inference.identity import Identity, identity_of
from metaprior.inference.runs import Progress
from metaprior.inference.snapshots import CheckpointStore, Snapshot, explained_misfit, filled, numbered
from metaprior.model import Model, release_times
from metaprior.random import StandardNormals

#: Transitions between two looks at the chains from outside the compiled loop.
STEP_BLOCK = 50


class Settings(NamedTuple):
    """How NUTS runs."""

    n_warmup: int = 500
    n_samples: int = 500
    target_accept: float = 0.8
    max_tree_depth: int = 10


class Samples(NamedTuple):
    """What the chains saw: models stacked [chains, samples, ...], log joint densities, divergences, tree sizes."""

    model: Model
    log_joint: np.ndarray
    num_divergences: int
    mean_steps: float


def require_numpyro() -> None:
    """Say how to get the sampler where it is missing."""
    if importlib.util.find_spec("numpyro") is None:
        raise missing_library("numpyro", part="the NUTS sampler", extra="hmc")


def log_joint(model: Model, batch: Batch) -> Float[Array, ""]:
    """Return log p(y, everything) of a model of points."""
    sizes, rows = model.weights.sizes(), batch.x.shape[0]

    def none(*shape: int) -> Array:
        return jnp.zeros((1, *shape), batch.x.dtype)

    normals = StandardNormals(none(sizes.latents), none(sizes.weights), none(sizes.spectral), none(rows, sizes.per_row))
    terms, _ = elbo_terms(model, normals, batch)
    return elbo(terms) + model.likelihood.log_prior()


def split(model: Model) -> tuple[Model, Model]:
    """Return what is sampled and all else."""

    def learned(leaf: Any, release_time: float) -> bool:
        return eqx.is_inexact_array(leaf) and bool(np.isfinite(release_time))

    return eqx.partition(model, jax.tree.map(learned, model, release_times(model)))


def nuts_kernel(rest: Model, settings: Settings) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return NumPyro's start and step for positions that are leaves of a model."""
    require_numpyro()
    from numpyro.infer.hmc import hmc

    def potential_of(batch: Batch, arrays: Model) -> Callable[[Model], Array]:
        return lambda position: -log_joint(eqx.combine(position, eqx.combine(arrays, rest)), batch)

    start, step = hmc(potential_fn_gen=potential_of, algo="NUTS")

    def begin(position: Model, key: Array, args: tuple[Any, ...]) -> Any:
        return start(
            position,
            settings.n_warmup,
            target_accept_prob=settings.target_accept,
            max_tree_depth=settings.max_tree_depth,
            model_args=args,
            rng_key=key,
        )

    return begin, step


@compiled
def _begin(positions: Model, rest: Model, keys: Array, batch: Batch, settings: Settings) -> Any:
    arrays, static = eqx.partition(rest, eqx.is_array)
    begin, _ = nuts_kernel(static, settings)
    return jax.vmap(lambda p, k: begin(p, k, (batch, arrays)))(positions, keys)


@compiled
def _advance(states: Any, rest: Model, batch: Batch, settings: Settings, count: Array) -> tuple[Any, dict[str, Any]]:
    """Make up to STEP_BLOCK transitions of all chains; return the states and every transition's record."""
    arrays, static = eqx.partition(rest, eqx.is_array)
    begin, step = nuts_kernel(static, settings)
    args = (batch, arrays)
    # NumPyro's step takes its settings from the last call of its start; what that computes is dropped
    first = jax.tree.map(lambda leaf: leaf[0], states)
    begin(first.z, first.rng_key, args)

    def body(index: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
        states, record = carry
        states = jax.vmap(lambda s: step(s, args))(states)
        new = _seen(states)
        return states, jax.tree.map(lambda all_, one: all_.at[index].set(one), record, new)

    empty = jax.tree.map(lambda leaf: jnp.zeros((STEP_BLOCK, *leaf.shape), leaf.dtype), _seen(states))
    return jax.lax.fori_loop(0, count, body, (states, empty))


def _seen(states: Any) -> dict[str, Any]:
    return {
        "position": states.z,
        "log_joint": -states.potential_energy,
        "diverging": states.diverging,
        "steps": states.num_steps,
    }


def sample(
    starts: Sequence[Model],
    data: Data,
    key: Key[Array, ""],
    settings: Settings,
    listener: Callable[[Progress], None] | None = None,
    checkpoint_store: CheckpointStore | None = None,
) -> Samples:
    """Run one chain from every start.

    A `checkpoint_store` keeps snapshots of the chains; where it has one, the chains go on from there and end with the
    same bits.
    """
    dtype = data.x.dtype
    typed = [
        jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype) if eqx.is_inexact_array_like(leaf) else leaf, model)
        for model in starts
    ]
    rest = split(typed[0])[1]
    positions = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[split(model)[0] for model in typed])
    batch = Batch(data.x, data.y, data.weight)
    keys = jax.random.split(jax.random.wrap_key_data(jax.random.key_data(key).ravel()[:2]), len(starts))
    states = _begin(positions, rest, keys, batch, settings)
    total, begun = settings.n_warmup + settings.n_samples, time.perf_counter()
    done, kept, identity = 0, list[dict[str, Any]](), Identity()
    if checkpoint_store is not None:
        identity = _identity(states, rest, batch, settings)
        if (known := checkpoint_store.load(identity)) is not None:
            with explained_misfit():
                states, done, kept = _resumed(known, states)
    last = done
    while done < total:
        limit = settings.n_warmup if done < settings.n_warmup else total
        count = min(STEP_BLOCK, limit - done)
        states, record = _advance(states, rest, batch, settings, jnp.asarray(count))
        done += count
        seen = jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[:count], record)
        if done > settings.n_warmup:
            kept.append(seen)
        if listener is not None:
            terms = {"log_joint": float(seen["log_joint"].mean()), "tree": float(seen["steps"].mean())}
            listener(Progress(done, total, terms, time.perf_counter() - begun))
        if checkpoint_store is not None and (done == total or done - last >= checkpoint_store.every):
            checkpoint_store.save(identity, _snapshot(states, done, kept))
            last = done
    return _gathered(kept, rest, len(starts))


def _identity(states: Any, rest: Model, batch: Batch, settings: Settings) -> Identity:
    """Return what tells the chains from others, before their first transition."""
    parts = {"states": states, "fixed parts": rest, "data": batch, "settings": settings}
    program = _advance.lower(states, rest, batch, settings, jnp.asarray(STEP_BLOCK)).as_text()
    return identity_of(parts, program)


def _snapshot(states: Any, done: int, kept: list[dict[str, Any]]) -> Snapshot:
    """Return all that the chains need to go on: where they are, and what they have seen since the warm-up."""
    seen = numbered("seen", jax.tree.map(lambda *leaves: np.concatenate(leaves), *kept)) if kept else {}
    return Snapshot(numbered("state", states) | seen, {"done": done})


def _resumed(known: Snapshot, states: Any) -> tuple[Any, int, list[dict[str, Any]]]:
    """Return the states, transitions and records of a snapshot."""
    states, done = filled("state", states, known.arrays), known.numbers["done"]
    if "seen 0" not in known.arrays:
        return states, done, []
    count = len(known.arrays["seen 0"])
    each = jax.tree.map(lambda leaf: np.broadcast_to(np.asarray(leaf), (count, *leaf.shape)), _seen(states))
    return states, done, [jax.tree.map(np.asarray, filled("seen", each, known.arrays))]


def _gathered(kept: list[dict[str, Any]], rest: Model, n_chains: int) -> Samples:
    record = jax.tree.map(lambda *leaves: np.swapaxes(np.concatenate(leaves), 0, 1), *kept)  # [chains, samples, ...]
    shape = record["log_joint"].shape
    wide = jax.tree.map(
        lambda leaf: np.broadcast_to(np.asarray(leaf), (*shape, *leaf.shape)) if eqx.is_array(leaf) else leaf, rest
    )
    model = eqx.combine(record["position"], wide)
    return Samples(model, record["log_joint"], int(record["diverging"].sum()), float(record["steps"].mean()))


def split_rhat(draws: Float[np.ndarray, "C S ..."]) -> np.ndarray:
    """Return the split R-hat of every quantity drawn by C chains: 1 where they agree."""
    from numpyro.diagnostics import split_gelman_rubin

    return np.asarray(split_gelman_rubin(np.asarray(draws)))


def effective_sample_size(draws: Float[np.ndarray, "C S ..."]) -> np.ndarray:
    """Return how many independent draws the chains are worth, for every quantity."""
    from numpyro.diagnostics import effective_sample_size as worth

    return np.asarray(worth(np.asarray(draws)))
