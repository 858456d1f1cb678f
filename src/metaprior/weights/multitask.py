"""Several tasks, one network: unit latents and code hyper-parameters shared, mapping and input kernel private.

A row holds one row of every task side by side, x = [x_1, ..., x_T], and so do its outputs: to the ELBO and to training
this is a weight model like any other. Given z, tasks are independent, so the KL is that of z, once, and the sum over
tasks of the KL of their private parts (paper, applications to multi-task learning). The private parts of all tasks
are stacked along a leading axis and computed by one `vmap`: the program does not grow with the number of tasks.

A task's private part is a MetaGP with holes where the shared parts belong; filled in, it is an ordinary MetaGP.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.leaves import Fixed, Leaf
from metaprior.networks import Layer, Network
from metaprior.noise import Noise, NoiseSizes
from metaprior.units import Units
from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel
from metaprior.weights.metagp import MetaGP, PreparedMetaGP


class Shared(eqx.Module):
    """What all tasks have in common: q(z), the layers' scales, and the kernels k_in, k_out of every mapping."""

    units: Units
    log_scale: Float[Leaf, "L 2"]
    kernels: tuple[Kernel, ...]


def _shared_nodes(weights: MetaGP) -> list:
    return [weights.units, weights.log_scale, *(k for m in weights.mappings for k in (m.kernel_in, m.kernel_out))]


def split(weights: MetaGP) -> tuple[Shared, MetaGP]:
    """Return the shared parts of a MetaGP, and the MetaGP with holes in their places."""
    units, log_scale, *kernels = _shared_nodes(weights)
    holes = [None] * (2 + len(kernels))
    return Shared(units, log_scale, tuple(kernels)), eqx.tree_at(_shared_nodes, weights, holes)


def joined(shared: Shared, private: MetaGP) -> MetaGP:
    """Return the MetaGP of a task: its private part with the holes filled. The inverse of `split`."""
    nodes = [shared.units, shared.log_scale, *shared.kernels]
    return eqx.tree_at(_shared_nodes, private, nodes, is_leaf=lambda node: node is None)


class MultiTask(WeightModel):
    """MetaGPs of T tasks with common unit latents, code kernels and scales."""

    shared: Shared | Fixed
    private: MetaGP

    @classmethod
    def of(cls, tasks: Sequence[MetaGP]) -> "MultiTask":
        """Join MetaGPs of equal shapes; what is shared is taken from the first."""
        parts = [split(task) for task in tasks]
        return cls(parts[0][0], jax.tree.map(lambda *leaves: np.stack(leaves), *[private for _, private in parts]))

    def with_shared_held(self) -> "MultiTask":
        """Return the model of which training moves the private parts only."""
        return MultiTask(Fixed(self.common), self.private)

    @property
    def common(self) -> Shared:
        """The shared parts, learned or held."""
        return self.shared.value if isinstance(self.shared, Fixed) else self.shared

    @property
    def num_tasks(self) -> int:
        """T."""
        return self.private.weight_noise.log_std.shape[0]

    @property
    def start_jitter(self) -> float:
        """The relative jitter of the factorisations."""
        return self.private.start_jitter

    def task(self, index: int) -> MetaGP:
        """Return the MetaGP of one task."""
        return joined(self.common, jax.tree.map(lambda leaf: leaf[index], self.private))

    def sizes(self) -> NoiseSizes:
        """The latents' normals once, all others once a task."""
        one = self.task(0).sizes()
        return NoiseSizes(one.units, *(self.num_tasks * size for size in one[1:]))

    def prepared(self) -> "PreparedTasks":
        """Factor every task's K_uu. Cost T M^3 a mapping."""
        return PreparedTasks(jax.vmap(lambda private: joined(self.common, private).prepared())(self.private))

    def kl(self) -> dict[str, Float[Array, ""]]:
        """Return the part of z, which counts once, and the private parts, summed over tasks."""
        each = jax.vmap(lambda private: joined(self.common, private).kl())(self.private)
        return {**{name: jnp.sum(value) for name, value in each.items()}, "kl_z": self.common.units.kl()}

    @property
    def couples_rows(self) -> bool:
        """Whether the tasks' conditionals draw rows jointly."""
        return self.private.couples_rows


class PreparedTasks(PreparedWeights):
    """The tasks with their factors, stacked."""

    tasks: PreparedMetaGP

    @property
    def jitter(self) -> Float[Array, ""]:
        """The largest jitter of all tasks."""
        return jnp.max(self.tasks.used_jitter)

    def draw(self, noise: Noise) -> "TasksDraw":
        """Return a draw: one z for all tasks, then every task's own."""
        num_tasks = self.tasks.used_jitter.shape[0]
        return TasksDraw(
            self.tasks, noise.units, noise.weights.reshape(num_tasks, -1), noise.spectral.reshape(num_tasks, -1)
        )


class TasksDraw(WeightDraw):
    """One draw of every task; x, rows and outputs hold the tasks' own side by side."""

    tasks: PreparedMetaGP
    units: Float[Array, " U"]
    weight_normals: Float[Array, "T W"]
    spectral: Float[Array, "T F"]

    def _each(self, function: Callable[..., Any], x: Array, rows: Array, *more: Array, axis: int) -> Any:
        """Return function(a task's draw, its x, its rows, ...) of all tasks, along an axis of the answers."""

        def one(task: PreparedMetaGP, weights: Array, spectral: Array, x: Array, rows: Array, *more: Array) -> Any:
            return function(task.draw(Noise(self.units, weights, spectral, rows)), x, rows, *more)

        num_tasks = self.spectral.shape[0]
        parts = (_by_task(x, num_tasks), _by_task(rows, num_tasks), *more)
        along = (0, 0, 0, *[1 for _ in parts])
        return jax.vmap(one, in_axes=along, out_axes=axis)(self.tasks, self.weight_normals, self.spectral, *parts)

    def outputs(self, network: Network, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> Float[Array, "B K"]:
        """Return all tasks' outputs."""
        f = self._each(lambda draw, x, rows: draw.outputs(network, x, rows), x, rows, axis=1)
        return f.reshape(x.shape[0], -1)

    def at(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Layer]:
        """Return layers that push the activations of all tasks, [B, T, units]."""

        def layer(index: int) -> Layer:
            return lambda h: self._each(lambda draw, x, rows, h: draw.at(x, rows)[index](h), x, rows, h, axis=1)

        return [layer(index) for index in range(len(self.tasks.model.wires))]

    def weights(self, x: Float[Array, "B D"], rows: Float[Array, "B R"]) -> list[Array]:
        """Return explicit weights with a leading axis of tasks: [T, I, J], or [T, B, I, J]."""
        return self._each(lambda draw, x, rows: draw.weights(x, rows), x, rows, axis=0)


def _by_task(side_by_side: Float[Array, "B n"], num_tasks: int) -> Float[Array, "B T m"]:
    return side_by_side.reshape(side_by_side.shape[0], num_tasks, side_by_side.shape[1] // num_tasks)
