"""Snapshots: what a run needs to go on, as named arrays and plain numbers, and the protocol of what stores them."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from metaprior.types import is_array


class Snapshot(NamedTuple):
    """All that a run needs to go on: arrays and plain numbers, by name."""

    arrays: dict[str, np.ndarray]
    numbers: dict[str, Any]


@runtime_checkable
class CheckpointStore(Protocol):
    """Stores the snapshots of a run: `save` after every so many steps, `load` before the first."""

    every: int

    def save(self, snapshot: Snapshot) -> None:
        """Keep a snapshot in place of the last."""

    def load(self) -> Snapshot | None:
        """Return the last snapshot, None where there is none."""


def numbered(name: str, tree: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a tree, each named by its position."""
    leaves = jax.tree.leaves(eqx.filter(tree, is_array))
    plain = [jax.random.key_data(leaf) if _is_key(leaf) else leaf for leaf in leaves]
    return {f"{name} {i}": np.asarray(leaf) for i, leaf in enumerate(plain)}


def filled(name: str, tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return a tree with the arrays that `numbered` gave."""
    old, static = eqx.partition(tree, is_array)
    leaves, structure = jax.tree.flatten(old)
    new = [_like(leaf, arrays[f"{name} {i}"]) for i, leaf in enumerate(leaves)]
    return eqx.combine(jax.tree.unflatten(structure, new), static)


def _like(leaf: Any, array: np.ndarray) -> Any:
    values = jnp.asarray(array)
    return jax.random.wrap_key_data(values, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else values


def _is_key(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key))
