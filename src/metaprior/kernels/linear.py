"""The linear kernel: sum_d variance_d x_d x'_d. Straight lines through the origin."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.base import Hyper, HyperKernel, checked_bounds, checked_names, log_positive
from metaprior.types import Leaf


class Linear(HyperKernel):
    """sum_d variance_d x_d x'_d; add a `Constant` for an offset.

    `variance=None` means 1 in (standardised) units of the inputs; a given value is in the units of the data.
    """

    log_variance: Leaf
    given: bool = eqx.field(static=True)

    def __init__(
        self,
        variance: Hyper = None,
        *,
        fixed: Sequence[str] = (),
        bounds: dict[str, tuple[float, float]] | None = None,
    ) -> None:
        """Take a positive variance of the slope, or one a dimension."""
        log = log_positive("Linear", "variance", variance)
        self.given = log is not None
        self.log_variance = np.zeros(()) if log is None else log
        self.fixed = checked_names("Linear", self.hypers(), fixed)
        self.bounds = checked_bounds("Linear", self.hypers(), bounds)

    @property
    def variance(self) -> Array:
        """The variance of the slopes."""
        return jnp.exp(self.log_variance)

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return a diag(variance) b'."""
        return (self.variance * a) @ b.T

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return sum_d variance_d a_d^2."""
        return jnp.sum(self.variance * a * a, axis=1)

    def num_normals(self, num_dims: int) -> int:
        """A slope a dimension."""
        return num_dims

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return random straight lines."""
        return (jnp.sqrt(self.variance) * a) @ normals

    def per_dimension(self) -> tuple[str, ...]:
        """One variance a dimension."""
        return ("variance",)

    def standardised(self, scale: np.ndarray) -> "Linear":
        """A given slope a data unit becomes a slope a standardised unit; the default is one already."""
        return self.rescaled("variance", 2 * np.log(scale), leaf=self.given)

    def unstandardised(self, scale: np.ndarray) -> "Linear":
        """Express the variance in data units, given or not."""
        return self.rescaled("variance", -2 * np.log(scale))
