"""What the kernels of a scaled distance share: k(x, x') = h(|(x - x') / lengthscale|), and their spectral features."""

import abc
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.base import (
    Hyper,
    HyperKernel,
    checked_bounds,
    checked_names,
    log_positive,
    squared_distance,
)
from metaprior.numerics import cosine
from metaprior.types import Leaf


class Stationary(HyperKernel):
    """A kernel of the distance scaled by one lengthscale a dimension (ARD), with unit variance.

    `lengthscale=None` means one unit of the (standardised) inputs, less where it is the whole input kernel of a network
    (`metaprior.estimators.data_kernel`); a given value is in the units of the data.
    """

    log_lengthscale: Leaf
    given: bool = eqx.field(static=True)

    def __init__(
        self,
        lengthscale: Hyper = None,
        *,
        fixed: Sequence[str] = (),
        bounds: dict[str, tuple[float, float]] | None = None,
    ) -> None:
        """Take natural values: a positive lengthscale, or one a dimension."""
        name = type(self).__name__
        log = log_positive(name, "lengthscale", lengthscale)
        self.given = log is not None
        self.log_lengthscale = np.zeros(()) if log is None else log
        self.fixed = checked_names(name, self.hypers(), fixed)
        self.bounds = checked_bounds(name, self.hypers(), bounds)

    @property
    def lengthscale(self) -> Array:
        """The distance, per dimension, over which the function changes."""
        return jnp.exp(self.log_lengthscale)

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
        """Frequencies, a phase, and the mixture's own."""
        return num_dims + 1 + self.num_mixture_normals()

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return sqrt(2) cos(w . x + phase), w from the spectral density."""
        num_dims = a.shape[1]
        spread, weight = self.spectral_scale(normals[num_dims + 1 :])
        frequencies = normals[:num_dims] * spread / self.lengthscale.reshape(-1, 1)
        # a normal times a full turn is uniform on the circle to 3e-9
        phase = 2 * np.pi * normals[num_dims]
        return jnp.sqrt(2 * weight) * cosine(a @ frequencies + phase)

    def per_dimension(self) -> tuple[str, ...]:
        """One lengthscale a dimension."""
        return ("lengthscale",)

    def starting_at(self, lengthscale: float) -> "Stationary":
        """Return the kernel with a lengthscale (standardised) where none was given and it is to be learned."""
        if self.given or "lengthscale" in self.fixed:
            return self
        return self.with_leaves({"lengthscale": np.full_like(self.log_lengthscale, np.log(lengthscale))})

    def standardised(self, scale: np.ndarray) -> "Stationary":
        """Convert a given lengthscale; the default is one standardised unit already."""
        return self.rescaled("lengthscale", -np.log(scale), leaf=self.given)

    def unstandardised(self, scale: np.ndarray) -> "Stationary":
        """Express the lengthscale in data units, given or not."""
        return self.rescaled("lengthscale", np.log(scale))
