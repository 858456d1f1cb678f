"""Snapshots: what a run needs to go on, as named arrays and plain numbers, and the protocol of what stores them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from metaprior.inference.identity import Identity
from metaprior.types import is_array


class Snapshot(NamedTuple):
    """All that a run needs to go on: arrays and plain numbers, by name."""

    arrays: dict[str, np.ndarray]
    numbers: dict[str, Any]


@runtime_checkable
class CheckpointStore(Protocol):
    """Stores the snapshots of a run: `load` before the first step, `save` after every so many."""

    every: int

    def load(self, run: Identity) -> Snapshot | None:
        """Return the last snapshot, None where there is none; raise where it is of another run."""

    def save(self, run: Identity, snapshot: Snapshot) -> None:
        """Keep a snapshot of a run."""


def numbered(name: str, tree: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a tree, each named by its position."""
    leaves = jax.tree.leaves(eqx.filter(tree, is_array))
    plain = [jax.random.key_data(leaf) if _is_key(leaf) else leaf for leaf in leaves]
    return {f"{name} {i}": np.asarray(leaf) for i, leaf in enumerate(plain)}


def filled(name: str, tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return a tree with the arrays that `numbered` gave."""
    old, static = eqx.partition(tree, is_array)
    leaves, structure = jax.tree.flatten(old)
    new = [_like(leaf, arrays.get(f"{name} {i}")) for i, leaf in enumerate(leaves)]
    return eqx.combine(jax.tree.unflatten(structure, new), static)


@contextmanager
def explained_misfit() -> Iterator[None]:
    """Turn whatever a snapshot of another form raises into one clear error."""
    try:
        yield
    except (LookupError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"checkpoint: its content does not fit this run ({error!r}); delete the folder.") from error


def _like(leaf: Any, array: np.ndarray | None) -> Any:
    plain = jax.random.key_data(leaf) if _is_key(leaf) else leaf
    if array is None or array.shape != plain.shape or array.dtype != plain.dtype:
        got = "none" if array is None else f"{array.dtype} {array.shape}"
        raise ValueError(f"checkpoint: expected an array of {plain.dtype} {plain.shape}; got {got}: delete the folder.")
    values = jnp.asarray(array)
    return jax.random.wrap_key_data(values, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else values


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))
