"""Training beyond one device: rows are spread over a mesh of devices, the model lies on each of them.

A step's rows are cut into equal parts, every device computes its part's share of the gradient, and the shares are
summed: the numbers are those of one device, up to the order of a sum. Where a step takes all rows each device holds
its own part only; where it takes a batch, each holds all rows, so that choosing a batch moves nothing between them.
The mesh may reach over several hosts (`jax.distributed`): then every process makes the same calls with the same data.
"""

from typing import TypeVar

import equinox as eqx
import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from metaprior.inference.data import Data, StepConfig, padded, takes_all_rows

#: The mesh's one axis.
ROWS = "rows"

Tree = TypeVar("Tree")


def row_mesh(num_devices: int | None = None) -> Mesh:
    """Return a mesh of the first devices (None: of all, on all hosts)."""
    devices = jax.devices()
    if num_devices is not None and not 1 <= num_devices <= len(devices):
        raise ValueError(
            f"expected at most {len(devices)} devices, which JAX has here; got {num_devices}. On a CPU, XLA_FLAGS="
            "--xla_force_host_platform_device_count=N, set before JAX starts, makes N of one."
        )
    return Mesh(np.array(devices[:num_devices]), (ROWS,))


def placed(data: Data, step_config: StepConfig, mesh: Mesh) -> Data:
    """Put the data on the mesh's devices: cut into rows where a step takes all of them, whole otherwise."""
    parts = mesh.size
    size = step_config.batch_size
    if size is not None and not takes_all_rows(data, size):
        if size % parts:
            raise ValueError(f"batch_size: expected a multiple of the {parts} devices; got {size}.")
        return replicated(data, mesh)
    data = padded(data, -(-data.x.shape[0] // parts) * parts)
    rows, whole = NamedSharding(mesh, PartitionSpec(ROWS)), NamedSharding(mesh, PartitionSpec())
    x, y, weight = jax.device_put((data.x, data.y, data.weight), rows)
    return Data(x, y, weight, jax.device_put(data.num_rows, whole))


def replicated(tree: Tree, mesh: Mesh) -> Tree:
    """Put a copy of every array on each of the mesh's devices."""
    arrays, rest = eqx.partition(tree, eqx.is_array)
    return eqx.combine(jax.device_put(arrays, NamedSharding(mesh, PartitionSpec())), rest)


def cut_by_rows(tree: Tree, mesh: Mesh | None) -> Tree:
    """Inside a compiled program: let every device have its own rows."""
    if mesh is None:
        return tree
    return jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, PartitionSpec(ROWS)))


def made_whole(tree: Tree, mesh: Mesh | None) -> Tree:
    """Inside a compiled program: let every device have all of it."""
    if mesh is None:
        return tree
    return jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, PartitionSpec()))
