"""The constant kernel: the same value everywhere. As an input kernel it gives back the global model."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.kernels.base import HyperKernel, checked_bounds, checked_names, log_positive
from metaprior.types import Leaf


class Constant(HyperKernel):
    """k(x, x') = value."""

    log_value: Leaf

    def __init__(
        self,
        value: float | int = 1.0,
        *,
        fixed: Sequence[str] = (),
        bounds: dict[str, tuple[float, float]] | None = None,
    ) -> None:
        """Take a positive number."""
        log = log_positive("Constant", "value", value)
        if log is None or log.ndim:
            raise ValueError(f"Constant: value must be one positive number; got {value!r}.")
        self.log_value = log
        self.fixed = checked_names("Constant", self.hypers(), fixed)
        self.bounds = checked_bounds("Constant", self.hypers(), bounds)

    @property
    def value(self) -> Array:
        """The covariance of any two points."""
        return jnp.exp(self.log_value)

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the value everywhere."""
        return jnp.full((a.shape[0], b.shape[0]), self.value, a.dtype)

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return the value everywhere."""
        return jnp.full(a.shape[0], self.value, a.dtype)

    def num_normals(self, num_dims: int) -> int:
        """A sign."""
        return 1

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return a random sign times the root of the value: zero-mean, with exactly this square."""
        sign = jnp.where(normals[0] >= 0, 1, -1).astype(a.dtype)
        return jnp.broadcast_to(jnp.sqrt(self.value) * sign, (a.shape[0], normals.shape[1]))
