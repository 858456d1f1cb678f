"""The constant kernel has the same value everywhere. As an input kernel it gives the global model."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.kernels.hyper import Hyper, hyper
from metaprior.kernels.hyper_kernel import HyperKernel
from metaprior.types import Leaf


class Constant(HyperKernel):
    """k(x, x') = value."""

    value: Hyper = hyper(1.0, doc="The covariance of any two points.")

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the value everywhere."""
        return jnp.full((a.shape[0], b.shape[0]), self.value, a.dtype)

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return the value everywhere."""
        return jnp.full(a.shape[0], self.value, a.dtype)

    def num_normals(self, num_dims: int) -> int:
        """Return 1: a feature is a random sign."""
        return 1

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return a random sign times sqrt(value), which has zero mean and exactly this square."""
        sign = jnp.where(normals[0] >= 0, 1, -1).astype(a.dtype)
        return jnp.broadcast_to(jnp.sqrt(self.value) * sign, (a.shape[0], normals.shape[1]))
