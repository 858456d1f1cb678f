"""What the kernels of a scaled distance share: k(x, x') = h(|(x - x') / lengthscale|), and their spectral features."""

import abc
from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.hyper import Hyper, hyper
from metaprior.kernels.hyper_kernel import HyperKernel
from metaprior.numerics import cosine
from metaprior.types import Leaf

#: Dimensions up to which distances are taken by differences; beyond, one product of matrices is much quicker.
FEW_DIMS = 16
#: Pairs of points from which on the product is quicker for any number of dimensions (measured, with the gradient). In
#: float32 it is not taken for that: of 500 points that lie many lengthscales apart its rounding makes a matrix that is
#: no covariance.
MANY_PAIRS = 10_000


S = TypeVar("S", bound="Stationary")


class Stationary(HyperKernel):
    """A kernel of the distance scaled by one lengthscale per dimension (ARD), with unit variance.

    `lengthscale=None` means one unit of the (standardised) inputs, less where it is the whole input kernel of a network
    (`metaprior.estimators.data_kernel`); a given value is in the units of the data.
    """

    lengthscale: Hyper = hyper(
        None,
        start=1.0,
        per_dimension=True,
        unit=1,
        doc="The distance, per dimension, over which the function changes.",
    )

    @abc.abstractmethod
    def of_squared_distance(self, r2: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """Return the kernel at a squared scaled distance."""

    def spectral_scale(self, normals: Float[Leaf, "R F"]) -> tuple[Float[Array, " F"], Float[Array, " F"]]:
        """Return (spread of the frequencies, weight of the feature): the kernel as a scale mixture of RBFs."""
        ones = jnp.ones(normals.shape[1], normals.dtype)
        return ones, ones

    def num_mixture_normals(self) -> int:
        """Return how many normals `spectral_scale` takes."""
        return 0

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return h(|(a - b) / lengthscale|)."""
        return self.of_squared_distance(squared_distance(a, b, self.lengthscale))

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return ones."""
        return jnp.ones(a.shape[0], a.dtype)

    def num_normals(self, num_dims: int) -> int:
        """Return the count of the frequencies, a phase and the mixture's own normals."""
        return num_dims + 1 + self.num_mixture_normals()

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return sqrt(2) cos(w . x + phase), w from the spectral density."""
        num_dims = a.shape[1]
        spread, weight = self.spectral_scale(normals[num_dims + 1 :])
        frequencies = normals[:num_dims] * spread / self.lengthscale.reshape(-1, 1)
        # a normal times a full turn is uniform on the circle to 3e-9
        phase = 2 * np.pi * normals[num_dims]
        return jnp.sqrt(2 * weight) * cosine(a @ frequencies + phase)

    def starting_at(self: S, lengthscale: float) -> S:
        """Return the kernel with a lengthscale (standardised) where none was given and it is to be learned."""
        if "lengthscale" not in self.unset or "lengthscale" in self.fixed:
            return self
        return self.with_leaves(
            {"lengthscale": np.full_like(np.asarray(self.leaf("lengthscale")), np.log(lengthscale))}
        )


def squared_distance(
    a: Float[Leaf, "N D"], b: Float[Leaf, "M D"], lengthscale: Float[Leaf, "*d"]
) -> Float[Array, "N M"]:
    """Return |(a_n - b_m) / lengthscale|^2: by differences in few dimensions, by the expansion of the square in many.

    Points that coincide have distance 0 whatever the lengthscale: differences are taken before they are scaled (a
    compiler may fuse a * scale - b * scale to something that is not 0), and of the expansion what lies below its own
    rounding is taken for 0.
    """
    scale = jnp.broadcast_to(1 / lengthscale, (a.shape[1],))
    by_differences = a.shape[0] * b.shape[0] < MANY_PAIRS or scale.dtype == jnp.float32
    if a.shape[1] <= FEW_DIMS and by_differences:
        # the dimensions first: rows of the result are then computed side by side, and one dimension compiles as many do
        return jnp.sum(((a.T[:, :, None] - b.T[:, None, :]) * scale[:, None, None]) ** 2, axis=0)
    a, b = a * scale, b * scale
    norms = jnp.sum(a * a, 1)[:, None] + jnp.sum(b * b, 1)[None, :]
    r2 = norms - 2 * a @ b.T
    return jnp.where(r2 > 8 * jnp.finfo(r2.dtype).eps * norms, r2, 0)
