"""Two trees of arrays, compared leaf by leaf."""

import equinox as eqx
import jax
import numpy as np


def leaves(tree: object) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array_like))]


def same_bits(a: object, b: object) -> bool:
    return all(u.tobytes() == v.tobytes() for u, v in zip(leaves(a), leaves(b), strict=True))


def assert_close(found: object, expected: object, **tolerance: float) -> None:
    """The leaves are within the tolerance of each other, and not all of them are nought."""
    assert any(np.abs(leaf).max() > 1e-3 for leaf in leaves(expected))
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, **tolerance)
