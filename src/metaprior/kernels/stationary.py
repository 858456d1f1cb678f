"""Kernels of a scaled distance, k(x, x') = h(|(x - x') / lengthscale|), and their spectral features."""

import abc
from typing import TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.hyper import Hyper, hyper
from metaprior.kernels.hyper_kernel import HyperKernel
from metaprior.numerics import cosine
from metaprior.types import Leaf

#: With at most so many dimensions distances are computed from differences; with more, a matrix product is much faster.
FEW_DIMS = 16
#: From so many pairs of points the product is faster for any number of dimensions (measured with the gradient). In few
#: dimensions it is not used in float32: for 500 points many lengthscales apart, its rounding errors give a matrix that
#: is not a covariance.
MANY_PAIRS = 10_000
#: The scale of the Cauchy prior of a column's log lengthscale around the median of all. Without this prior, few rows
#: for each column are fitted by lengthscales that differ by chance (docs/notes/few-rows.md).
COLUMN_SPREAD = 0.2


S = TypeVar("S", bound="Stationary")


class Stationary(HyperKernel):
    """A kernel of the distance scaled by one lengthscale per dimension (ARD), with unit variance.

    `lengthscale=None` means one unit of the standardised inputs, or less if the kernel is the whole input kernel of a
    network (`metaprior.estimators.data_kernel`). A given value is in the units of the data.
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
        """Return the spread of the frequencies and the weight of the feature, if the kernel is a mixture of RBFs."""
        ones = jnp.ones(normals.shape[1], normals.dtype)
        return ones, ones

    def num_mixture_normals(self) -> int:
        """Return how many normals `spectral_scale` needs."""
        return 0

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return h(|(a - b) / lengthscale|)."""
        return self.of_squared_distance(squared_distance(a, b, self.lengthscale))

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return ones."""
        return jnp.ones(a.shape[0], a.dtype)

    def num_normals(self, num_dims: int) -> int:
        """Return the count for the frequencies, the phase and the mixture."""
        return num_dims + 1 + self.num_mixture_normals()

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return sqrt(2) cos(w . x + phase), with w drawn from the spectral density."""
        num_dims = a.shape[1]
        spread, weight = self.spectral_scale(normals[num_dims + 1 :])
        frequencies = normals[:num_dims] * spread / self.lengthscale.reshape(-1, 1)
        # A normal times a full turn is uniform on the circle, to within 3e-9.
        phase = 2 * np.pi * normals[num_dims]
        return jnp.sqrt(2 * weight) * cosine(a @ frequencies + phase)

    def cost_of_lengthscales(self) -> Float[Array, ""]:
        """Return the sum of log(1 + (d / s)^2) for the deviations d of the logarithms from their median.

        This is a Cauchy prior of scale s (`COLUMN_SPREAD`): a few columns may differ by any factor for a few nats, but
        differences between all columns have to be worth their price.
        """
        logs = jnp.asarray(self.leaf("lengthscale"))
        return jnp.sum(jnp.log1p(jnp.square((logs - jnp.median(logs)) / COLUMN_SPREAD)))

    def starting_at(self: S, lengthscale: float) -> S:
        """Return the kernel with this lengthscale, in standardised units, if none was given and it is learned."""
        if "lengthscale" not in self.unset or "lengthscale" in self.fixed:
            return self
        return self.with_leaves(
            {"lengthscale": np.full_like(np.asarray(self.leaf("lengthscale")), np.log(lengthscale))}
        )


def squared_distance(
    a: Float[Leaf, "N D"], b: Float[Leaf, "M D"], lengthscale: Float[Leaf, "*d"]
) -> Float[Array, "N M"]:
    """Return |(a_n - b_m) / lengthscale|^2, from differences in few dimensions and by expanding the square in many.

    Equal points have distance 0 for any lengthscale. For this, differences are taken before they are scaled (a compiler
    may fuse a * scale - b * scale into something that is not 0), and values of the expansion below its rounding error
    are replaced by 0.
    """
    scale = jnp.broadcast_to(1 / lengthscale, (a.shape[1],))
    by_differences = a.shape[0] * b.shape[0] < MANY_PAIRS or scale.dtype == jnp.float32
    if a.shape[1] <= FEW_DIMS and by_differences:
        # The axis of dimensions is first: the sum is vectorised over rows, and one dimension compiles as many do.
        return jnp.sum(((a.T[:, :, None] - b.T[:, None, :]) * scale[:, None, None]) ** 2, axis=0)
    a, b = a * scale, b * scale
    norms = jnp.sum(a * a, 1)[:, None] + jnp.sum(b * b, 1)[None, :]
    r2 = norms - 2 * a @ b.T
    return jnp.where(r2 > 8 * jnp.finfo(r2.dtype).eps * norms, r2, 0)
