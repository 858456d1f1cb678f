"""The likelihood of several tasks side by side: tasks are independent given their functions; a NaN was not observed."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.leaves import Leaf
from metaprior.likelihoods import Likelihood


class TasksLikelihood(Likelihood):
    """log p(y | f) = sum_t log p_t(y_t | f_t) over the tasks whose y_t is there.

    `parts` are the tasks' likelihoods, their numbers stacked along a leading axis; f and y hold the tasks' columns
    side by side.
    """

    parts: Likelihood
    num_tasks: int = eqx.field(static=True)

    @classmethod
    def of(cls, likelihoods: list[Likelihood]) -> "TasksLikelihood":
        """Join likelihoods of one kind."""
        return cls(jax.tree.map(lambda *leaves: np.stack(leaves), *likelihoods), len(likelihoods))

    def task(self, index: int) -> Likelihood:
        """Return the likelihood of one task."""
        return jax.tree.map(lambda leaf: leaf[index], self.parts)

    def _by_task(self, columns: Float[Array, "*b n"]) -> Float[Array, "*b T m"]:
        return columns.reshape(*columns.shape[:-1], self.num_tasks, columns.shape[-1] // self.num_tasks)

    def log_prob(self, f: Float[Array, "*b K"], y: Float[Array, "*c P"]) -> Float[Array, "*d"]:
        """Return the sum over the tasks that were observed."""
        f, y = self._by_task(f), self._by_task(y)
        missing = jnp.any(jnp.isnan(y), axis=-1)
        # no NaN may enter, or derivatives would be NaN
        present = jnp.where(missing[..., None], 0, y)
        each = jax.vmap(lambda part, f, y: part.log_prob(f, y), in_axes=(0, -2, -2), out_axes=-1)
        return jnp.sum(jnp.where(missing, 0, each(self.parts, f, present)), axis=-1)

    def _side_by_side(self, name: str, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        each = jax.vmap(lambda part, f: getattr(part, name)(f), in_axes=(0, -2), out_axes=-2)
        found = each(self.parts, self._by_task(f))
        return found.reshape(*f.shape[:-1], -1)

    def mean(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return E[y | f] of every task."""
        return self._side_by_side("mean", f)

    def variance(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return var[y | f] of every task."""
        return self._side_by_side("variance", f)

    def nodes(
        self, f: Float[Array, "*b K"], turn: Leaf | float = 0.0
    ) -> tuple[Float[Array, "R *b P"], Float[Array, "R *b"]]:
        """Refuse: quadrature over all tasks' y at once has no use."""
        raise NotImplementedError("nodes: expected the likelihood of one task; take `task(index)`.")

    def release_times(self) -> "TasksLikelihood":
        """Every task's noise is held as one task's is."""
        return dataclasses.replace(self, parts=self.parts.release_times())
