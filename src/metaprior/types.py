"""The type of a model's leaves: NumPy arrays while a model is built, stored and pickled, JAX arrays while it computes.

`Fixed` holds leaves that no training moves and no sampler samples.
"""

from typing import Any, TypeAlias

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array

#: A number or an array of numbers that a model holds.
Leaf: TypeAlias = Array | np.ndarray


def is_array(value: object) -> bool:
    """Return whether something is an array or a scalar of NumPy or JAX."""
    return isinstance(value, (jax.Array, np.ndarray, np.generic))


class Fixed(eqx.Module):
    """A part of a model that is not learned."""

    value: Any

    def release_times(self) -> "Fixed":
        """Return a tree like this one: every leaf is held for ever."""
        return jax.tree.map(lambda _: np.inf, self)
