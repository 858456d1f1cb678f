"""The Matern kernels with nu = 1/2, 3/2 and 5/2, whose functions have 0, 1 and 2 derivatives.

Their spectral density is a multivariate Student t with 2 nu degrees of freedom. A frequency is a normal divided by
sqrt(chi^2 / 2 nu), and the chi^2 is a sum of 1, 3 or 5 squared normals.
"""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.kernels.stationary import Stationary
from metaprior.types import Leaf


class _Matern(Stationary):
    degrees: ClassVar[int]

    def num_mixture_normals(self) -> int:
        """Return the degrees of freedom of the chi^2."""
        return self.degrees

    def spectral_scale(self, normals: Float[Leaf, "R F"]) -> tuple[Float[Array, " F"], Float[Array, " F"]]:
        """Return sqrt(2 nu / chi^2), bounded away from infinity, and unit weights."""
        mean_square = jnp.mean(normals**2, axis=0)
        return 1 / jnp.sqrt(jnp.maximum(mean_square, 1e-6)), jnp.ones_like(mean_square)


class Matern12(_Matern):
    """exp(-r): continuous, nowhere smooth."""

    degrees = 1

    def of_squared_distance(self, r2: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """Return exp(-r)."""
        return jnp.exp(-_root(r2))


class Matern32(_Matern):
    """(1 + sqrt(3) r) exp(-sqrt(3) r): one derivative."""

    degrees = 3

    def of_squared_distance(self, r2: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """Return (1 + sqrt(3) r) exp(-sqrt(3) r)."""
        r = _root(3 * r2)
        return (1 + r) * jnp.exp(-r)


class Matern52(_Matern):
    """(1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r): two derivatives."""

    degrees = 5

    def of_squared_distance(self, r2: Float[Array, "*s"]) -> Float[Array, "*s"]:
        """Return (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)."""
        r = _root(5 * r2)
        return (1 + r + r * r / 3) * jnp.exp(-r)


def _root(r2: Float[Array, "*s"]) -> Float[Array, "*s"]:
    # The derivative of sqrt is infinite at 0. Branching on r2 > 0 is not safe: a compiler may compute r2 twice, once
    # with fused products, and if only one of them is 0 the two halves of the branch disagree.
    return jnp.sqrt(jnp.maximum(r2, jnp.finfo(r2.dtype).eps ** 2))
