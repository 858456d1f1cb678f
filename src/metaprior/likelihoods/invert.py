"""Inverting a distribution function by bisection."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

NUM_HALVINGS = 60


def invert(
    cdf: Callable[[Array], Array],
    level: Float[Array, "*s"],
    low: Float[Array, "*s"],
    high: Float[Array, "*s"],
) -> Float[Array, "*s"]:
    """Return y with cdf(y) = level between `low` and `high`, by `NUM_HALVINGS` steps of bisection."""

    def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        below = cdf(middle) < level
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    low, high = jax.lax.fori_loop(0, NUM_HALVINGS, halve, (low, high))
    return 0.5 * (low + high)
