"""Several tasks, one network: everything below the output layer is shared, and every task has its own output layer.

The unit latents q(z), the weights below q(u), the code kernels and the layers' scales are those of all tasks. A task's
own are the input kernel with its projection V and the output layer's weight noise. Given a draw of z and u the tasks
are independent Gaussian processes (`weight_gp.output`), so the KL of what is shared counts once:

    ELBO = E_q(z, u)[sum_t log p(y_t | z, u, theta_t)] - KL[q(z)||p(z)] - E KL[q(u)||p(u | z)] - sum_t KL[q(V_t)||p(V)].

All tasks take the same normals, hence the same z and u. The private parts are stacked along a leading axis and meet
the data through one `vmap` (`multitask.output`): what is shared is computed once, and the program does not grow with
the number of tasks.
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


class Private(eqx.Module):
    """What a task has for itself: the input kernel, what it sees of the input, and the output layer's weight noise."""

    input_kernel: Kernel | None
    input_map: InputMap
    weight_noise: WeightNoise


def _private_nodes(weights: MetaGP) -> tuple[Any, Any, Any]:
    # any: the places in a tree, where `tree_at` may look for other things than values
    assert weights.output is not None
    return weights.input_kernel, weights.input_map, weights.output.weight_noise


def _is_none(node: object) -> bool:
    return node is None


def split(weights: MetaGP) -> tuple[MetaGP, Private]:
    """Return what tasks share, a MetaGP with holes in the places of the private parts, and these."""
    private = Private(*_private_nodes(weights))
    return eqx.tree_at(_private_nodes, weights, (None, None, None), is_leaf=_is_none), private


def joined(shared: MetaGP, private: Private) -> MetaGP:
    """Return the MetaGP of a task: the shared parts with the holes filled. The inverse of `split`."""
    nodes = (private.input_kernel, private.input_map, private.weight_noise)
    return eqx.tree_at(_private_nodes, shared, nodes, is_leaf=_is_none)


class MultiTask(WeightModel):
    """MetaGPs of T tasks that differ in their private parts alone."""

    shared: MetaGP | Fixed
    private: Private

    @classmethod
    def of(cls, tasks: Sequence[MetaGP]) -> "MultiTask":
        """Join MetaGPs whose private parts have equal shapes; what is shared is taken from the first."""
        parts = [split(task) for task in tasks]
        return cls(parts[0][0], jax.tree.map(lambda *leaves: np.stack(leaves), *[private for _, private in parts]))

    def with_shared_held(self) -> "MultiTask":
        """Return the model of which training moves the private parts only."""
        return MultiTask(Fixed(self.common), self.private)

    @property
    def common(self) -> MetaGP:
        """The shared parts, learned or held."""
        return self.shared.value if isinstance(self.shared, Fixed) else self.shared

    @property
    def num_tasks(self) -> int:
        """T."""
        return self.private.weight_noise.log_std.shape[0]

    @property
    def start_jitter(self) -> float:
        """The relative jitter of the factorisations."""
        return self.common.start_jitter

    def task(self, index: int) -> MetaGP:
        """Return the MetaGP of one task."""
        return joined(self.common, jax.tree.map(lambda leaf: leaf[index], self.private))

    def sizes(self) -> NormalCounts:
        """Return the normals of one task: all tasks take the same."""
        return self.task(0).sizes()

    def prepared(self) -> "PreparedTasks":
        """Factor what is shared, once."""
        first = self.task(0)
        if isinstance(self.shared, Fixed):
            # nobody asks for the slopes of what is held
            first = jax.tree.map(jax.lax.stop_gradient, first)
        return PreparedTasks(first.prepared(), self.private)

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the parts of what is shared, which count once, and of V, summed over tasks."""
        each = jax.vmap(lambda private: joined(self.common, private).kl())(self.private)
        return {name: jnp.sum(values) if name == "kl_V" else values[0] for name, values in each.items()}

    @property
    def couples_rows(self) -> bool:
        """Whether the conditional draws rows jointly."""
        return self.common.couples_rows


class PreparedTasks(PreparedWeights):
    """The first task with its factors, which are those of all tasks, and the private parts of every task."""

    first: PreparedMetaGP
    private: Private

    @property
    def jitter(self) -> Float[Array, ""]:
        """The jitter of the shared factors."""
        return self.first.jitter

    def draw(self, normals: StandardNormals) -> "TasksDraw":
        """Return a draw: one z and one u for all tasks, and every task's own V."""
        input_normals = normals.weights[: self.first.model.input_map.num_normals]
        return TasksDraw(self.first.draw(normals), self.private, input_normals)


class TasksDraw(WeightDraw):
    """One draw of everything below the output layers, with what makes every task's own of it."""

    first: MetaGPDraw
    private: Private
    input_normals: Float[Array, " V"]

    def task(self, private: Private) -> MetaGPDraw:
        """Return the draw of the task with these private parts (one task's, not the stack)."""
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
        """Return the part of the shared values u, which counts once."""
        return self.first.kl()

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter of the shared factors."""
        return self.first.jitter

    def output_prior(self) -> OutputPrior:
        """Return the priors of all tasks' output weights, stacked."""
        return jax.vmap(lambda private: self.task(private).output_prior())(self.private)
