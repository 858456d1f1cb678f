"""The order in which a model learns: the mean function first, then the randomness, the KL and the observation noise.

Everything at once ends in an optimum where all is noise: the residual variance of weights that nothing explains yet is
noise to the likelihood, and shrinking the scale, which removes the signal, is the quickest way out. So a temperature
multiplies all normals, 0 at first and 1 from `normals_full` on; the KL is ramped beside it; the observation noise is
held until its release (`release_times`). All are fractions of the run, and plain numbers to the compiled loop: changing
them compiles nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.types import Leaf


class Settling(NamedTuple):
    """When a run has converged: its bound, averaged over a window of steps, rises by less than so many nats.

    Then the learning rate falls, over the last part of the recipe, and the run ends: however many steps it was given,
    it takes about those that it needs.
    """

    window: int = 50
    per_row: float = 0.002
    least: float = 0.3
    patience: int = 2

    def flat_at(self, bound: np.ndarray, num_rows: int) -> int | None:
        """Return the first step at which the bound was flat, None where that is still to come."""
        count = len(bound) // self.window
        means = np.mean(bound[: count * self.window].reshape(count, self.window), axis=1).tolist()
        looks = (seen for seen in range(1, count + 1) if self.is_flat(means[:seen], num_rows))
        first = next(looks, None)
        return None if first is None else first * self.window

    def is_flat(self, means: Sequence[float], num_rows: int) -> bool:
        """Return whether the means of the last windows no longer rise."""
        if len(means) < self.patience + 2:
            return False
        rise = max(means[-self.patience :]) - max(means[: -self.patience])
        return rise < self.patience * max(self.least, self.per_row * num_rows)


class Recipe(NamedTuple):
    """How a run goes; fractions are of the number of steps."""

    num_steps: Leaf | float = 3000
    learning_rate: Leaf | float = 0.02
    final_rate: Leaf | float = 0.01
    decay_starts: Leaf | float = 0.7
    begins: Leaf | float = 0.0
    rises: Leaf | float = 0.02
    normals_start: Leaf | float = 0.2
    normals_full: Leaf | float = 0.5
    kl_starts: Leaf | float = 0.2
    kl_full: Leaf | float = 0.7

    def progress(self, step: Array) -> Float[Array, ""]:
        """Return the fraction of the run that lies behind a step; a warm start begins late in the recipe."""
        return jnp.asarray(step, jnp.float32) * (1 - self.begins) / self.num_steps + self.begins

    def temperature(self, progress: Array) -> Float[Array, ""]:
        """Return the factor of all normals."""
        return ramp(progress, self.normals_start, self.normals_full)

    def kl_weight(self, progress: Array) -> Float[Array, ""]:
        """Return the factor of the KL."""
        return ramp(progress, self.kl_starts, self.kl_full)

    def rate(self, progress: Array) -> Float[Array, ""]:
        """Return the learning rate: a short rise, level, then from `decay_starts` a cosine to `final_rate` of it."""
        cosine = 0.5 * (1 + jnp.cos(jnp.pi * ramp(progress, self.decay_starts, 1.0)))
        shape = cosine * (1 - self.final_rate) + self.final_rate
        return shape * self.learning_rate * ramp(progress, self.begins - 1e-3, self.begins + self.rises)


#: Changes to a recipe for bounds that need no order: all at once, and half of the run for the falling rate.
ALL_AT_ONCE = {
    "normals_start": -2.0,
    "normals_full": -1.0,
    "kl_starts": -2.0,
    "kl_full": -1.0,
    "decay_starts": 0.5,
    "final_rate": 0.02,
}


def ramp(progress: Array, start: Leaf | float, end: Leaf | float) -> Float[Array, ""]:
    """Return 0 before `start`, 1 after `end`, a line between."""
    return jnp.clip((progress - start) / jnp.maximum(end - start, 1e-6), 0.0, 1.0)
