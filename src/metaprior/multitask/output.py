"""The integrated output layers of several tasks: given a draw of the shared parts, each is applied to its own rows.

The tasks are independent given the draw, so the bound is a sum over tasks, computed by one `vmap` over private parts,
regimes, likelihoods and rows. A row of the batch contains one row of every task, side by side. A target of NaN means
that the task has no such row, and it gets weight 0.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.inference import make_data
from metaprior.likelihoods import Likelihood
from metaprior.output_layer import ConditionedGP, FunctionGP, OutputLayer
from metaprior.output_layer.base import Batch
from metaprior.types import Fixed
from metaprior.weights.multitask import TasksDraw


class TasksOutput(OutputLayer):
    """Regimes of one kind, stacked along a leading axis; `rows` holds the data of all tasks once the fit has ended."""

    parts: OutputLayer
    num_tasks: int = eqx.field(static=True)
    rows: Fixed | None = None

    @classmethod
    def of(cls, regimes: list[OutputLayer]) -> "TasksOutput":
        """Join regimes of the same kind with equal shapes."""
        return cls(jax.tree.map(lambda *leaves: np.stack(leaves), *regimes), len(regimes))

    def task(self, index: int) -> OutputLayer:
        """Return the regime of one task, with the rows of that task if the data are stored."""
        own = jax.tree.map(lambda leaf: leaf[index], self.parts)
        if self.rows is None:
            return own
        table: Batch = self.rows.value
        # In NumPy, because JAX would round to float32 here.
        x, y = (np.split(np.asarray(columns), self.num_tasks, axis=1)[index] for columns in (table.x, table.y))
        real = (table.weight > 0) & ~np.any(np.isnan(y), axis=1)
        data = make_data(x[real], y[real], np.asarray(table.weight)[real], x.dtype.type)
        return own.with_rows(Batch(data.x, data.y, data.weight))

    def bound(
        self, gp: FunctionGP, likelihood: Likelihood, batch: Batch, normals: Float[Array, "B R"]
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Return the bound and the KL of variables with their own q, summed over tasks."""

        def one(regime: OutputLayer, own: FunctionGP, part: Likelihood, rows: Batch) -> Any:
            return regime.bound(own, part, rows, normals)

        return self._sum(one, gp, likelihood, self._by_task(batch))

    def score(
        self, gp: FunctionGP, likelihood: Likelihood, seen: Batch, held_out: Batch, normals: Float[Array, "B R"]
    ) -> Float[Array, ""]:
        """Return the expected log likelihood of held-out rows, summed over tasks."""

        def one(regime: OutputLayer, own: FunctionGP, part: Likelihood, seen: Batch, held_out: Batch) -> Any:
            return regime.score(own, part, seen, held_out, normals)

        return self._sum(one, gp, likelihood, self._by_task(seen), self._by_task(held_out))

    def conditioned(self, gp: FunctionGP, likelihood: Likelihood) -> ConditionedGP:
        """Raise an error, because every task has its own posterior."""
        raise NotImplementedError("conditioned: expected the regime of one task; use `task(index)`.")

    def with_rows(self, rows: Batch) -> "TasksOutput":
        """Return the regimes with the data of all tasks stored."""
        return TasksOutput(self.parts, self.num_tasks, Fixed(rows))

    def row_normals(self, likelihood: Likelihood, num_outputs: int) -> int:
        """Return the count of one task, because all tasks use the same normals."""
        return self.parts.row_normals(likelihood, num_outputs)

    def _sum(self, function: Callable[..., Any], gp: FunctionGP, likelihood: Likelihood, *rows: Batch) -> Any:
        """Return the sum over tasks of function(regime, functions, likelihood, rows, ...)."""
        draw, network = gp.draw, gp.network
        assert isinstance(draw, TasksDraw)

        def one(private: Any, regime: OutputLayer, part: Likelihood, *own: Batch) -> Any:
            return function(regime, FunctionGP.of(draw.task(private), network), part, *own)

        each = jax.vmap(one)(draw.private, self.parts, likelihood, *rows)
        return jax.tree.map(jnp.sum, each)

    def _by_task(self, table: Batch) -> Batch:
        """Return the rows of every task along a leading axis; rows that a task lacks have target 0 and weight 0."""
        x, y = (_with_axis_of_tasks(jnp.asarray(columns), self.num_tasks) for columns in (table.x, table.y))
        there = ~jnp.any(jnp.isnan(y), axis=-1)
        return Batch(x, jnp.where(there[..., None], y, 0), jnp.where(there, table.weight, 0))


def _with_axis_of_tasks(columns: Float[Array, "B n"], num_tasks: int) -> Float[Array, "T B m"]:
    return jnp.moveaxis(columns.reshape(len(columns), num_tasks, columns.shape[1] // num_tasks), 1, 0)
