"""Several tasks, one network: everything below the output layer is shared, and every task has its own output layer.

All tasks share the unit latents q(z), the weights below q(u), the code kernels and the scales of the layers. Each task
has its own input kernel with its projection V, and its own weight noise in the output layer. Given a draw of z and u,
the tasks are independent Gaussian processes (`weight_gp.output`), so the KL of the shared parts counts once:

    ELBO = E_q(z, u)[sum_t log p(y_t | z, u, theta_t)] - KL[q(z)||p(z)] - E KL[q(u)||p(u | z)] - sum_t KL[q(V_t)||p(V)].

All tasks use the same normals, and therefore the same z and u. The private parts are stacked along a leading axis, and
one `vmap` applies them to the data (`multitask.output`). So the shared parts are computed once, and the compiled
program does not grow with the number of tasks.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.inputs import InputMap
from metaprior.kernels import Kernel
from metaprior.networks import Layer
from metaprior.random import NormalCounts, StandardNormals
from metaprior.types import Fixed
from metaprior.weight_gp import OutputPrior, WeightNoise
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel
from metaprior.weights.metagp import MetaGP, MetaGPDraw, PreparedMetaGP

#: Parts of the KL that every task has for itself.
PRIVATE_KLS = ("kl_V", "kl_lengthscales")


class Private(eqx.Module):
    """The parts that each task has for itself: input kernel, input map, and weight noise of the output layer."""

    input_kernel: Kernel | None
    input_map: InputMap
    weight_noise: WeightNoise


def _private_nodes(weights: MetaGP) -> tuple[Any, Any, Any]:
    # `Any`: `tree_at` calls this on trees whose nodes are not values.
    assert weights.output is not None
    return weights.input_kernel, weights.input_map, weights.output.weight_noise


def _is_none(node: object) -> bool:
    return node is None


def split(weights: MetaGP) -> tuple[MetaGP, Private]:
    """Return the shared parts, as a MetaGP with None in place of the private parts, and the private parts."""
    private = Private(*_private_nodes(weights))
    return eqx.tree_at(_private_nodes, weights, (None, None, None), is_leaf=_is_none), private


def joined(shared: MetaGP, private: Private) -> MetaGP:
    """Return the MetaGP of a task from shared and private parts. This is the inverse of `split`."""
    nodes = (private.input_kernel, private.input_map, private.weight_noise)
    return eqx.tree_at(_private_nodes, shared, nodes, is_leaf=_is_none)


class MultiTask(WeightModel):
    """MetaGPs of T tasks that differ only in their private parts."""

    shared: MetaGP | Fixed
    private: Private

    @classmethod
    def of(cls, tasks: Sequence[MetaGP]) -> "MultiTask":
        """Join MetaGPs whose private parts have equal shapes; the shared parts are those of the first."""
        parts = [split(task) for task in tasks]
        return cls(parts[0][0], jax.tree.map(lambda *leaves: np.stack(leaves), *[private for _, private in parts]))

    def with_shared_held(self) -> "MultiTask":
        """Return the model with the shared parts fixed, so that training changes only the private parts."""
        return MultiTask(Fixed(self.common), self.private)

    @property
    def common(self) -> MetaGP:
        """The shared parts, learned or fixed."""
        return self.shared.value if isinstance(self.shared, Fixed) else self.shared

    @property
    def num_tasks(self) -> int:
        """T."""
        return self.private.weight_noise.log_std.shape[0]

    @property
    def start_jitter(self) -> float:
        """The relative jitter with which factorisations start."""
        return self.common.start_jitter

    def task(self, index: int) -> MetaGP:
        """Return the MetaGP of one task."""
        return joined(self.common, jax.tree.map(lambda leaf: leaf[index], self.private))

    def sizes(self) -> NormalCounts:
        """Return the counts of one task, because all tasks use the same normals."""
        return self.task(0).sizes()

    def prepared(self) -> "PreparedTasks":
        """Factor the shared parts once for all tasks."""
        first = self.task(0)
        if isinstance(self.shared, Fixed):
            # The gradient with respect to fixed parts is not needed.
            first = jax.tree.map(jax.lax.stop_gradient, first)
        return PreparedTasks(first.prepared(), self.private)

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KLs of the shared parts, counted once, and of V and the lengthscales, summed over tasks."""
        each = jax.vmap(lambda private: joined(self.common, private).kl())(self.private)
        return {name: jnp.sum(values) if name in PRIVATE_KLS else values[0] for name, values in each.items()}

    def kl_of_points(self) -> dict[str, Float[Array, ""]]:
        """Return those parts of the KL that are the cost of hyper-parameters as points."""
        names = self.task(0).kl_of_points()
        return {name: value for name, value in self.kl().items() if name in names}

    @property
    def couples_rows(self) -> bool:
        """Whether the rows of one call are drawn jointly."""
        return self.common.couples_rows


class PreparedTasks(PreparedWeights):
    """The prepared first task, whose factors serve all tasks, and the private parts of every task."""

    first: PreparedMetaGP
    private: Private

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter that a shared factor needed."""
        return self.first.jitter

    def draw(self, normals: StandardNormals) -> "TasksDraw":
        """Return a draw with one z and one u for all tasks, and a separate V for each task."""
        input_normals = normals.weights[: self.first.model.input_map.num_normals]
        return TasksDraw(self.first.draw(normals), self.private, input_normals)


class TasksDraw(WeightDraw):
    """One draw of everything below the output layers, and the private parts of every task."""

    first: MetaGPDraw
    private: Private
    input_normals: Float[Array, " V"]

    def task(self, private: Private) -> MetaGPDraw:
        """Return the draw of the task with these private parts, which must be those of a single task."""
        model = joined(split(self.first.model)[0], private)
        projections = private.input_map.draw(self.input_normals)
        return MetaGPDraw(model, projections, self.first.draws, self.first.z, self.first.own)

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return the layers below the output layers, which all tasks share."""
        return self.first.at(x, rows)

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return the explicit weights of the layers below the output layers."""
        return self.first.weights(x, rows)

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the KL of the shared values u, which counts once."""
        return self.first.kl()

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter that a shared factor needed."""
        return self.first.jitter

    def output_prior(self) -> OutputPrior:
        """Return the priors of the output weights of all tasks, stacked."""
        return jax.vmap(lambda private: self.task(private).output_prior())(self.private)
