"""The type of a model's leaves: NumPy arrays when a model is built, stored or pickled, JAX arrays in computations.

`Fixed` contains leaves that are neither trained nor sampled.
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
        """Return a tree like this one with inf for every leaf, because none is released."""
        return jax.tree.map(lambda _: np.inf, self)
