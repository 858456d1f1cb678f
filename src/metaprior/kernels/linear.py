"""The linear kernel: sum_d variance_d x_d x'_d. Its functions are straight lines through the origin."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.kernels.hyper import Hyper, hyper
from metaprior.kernels.hyper_kernel import HyperKernel
from metaprior.types import Leaf


class Linear(HyperKernel):
    """sum_d variance_d x_d x'_d; add a `Constant` for an offset.

    `variance=None` means 1 in the units of the standardised inputs; a given value is in the units of the data.
    """

    variance: Hyper = hyper(
        None, start=1.0, per_dimension=True, unit=-2, doc="The variance of the slope, per dimension."
    )

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return a diag(variance) b'."""
        return (self.variance * a) @ b.T

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return sum_d variance_d a_d^2."""
        return jnp.sum(self.variance * a * a, axis=1)

    def num_normals(self, num_dims: int) -> int:
        """Return one normal per dimension, for its slope."""
        return num_dims

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return random straight lines."""
        return (jnp.sqrt(self.variance) * a) @ normals
