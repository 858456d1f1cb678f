"""The periodic kernel: an RBF on the circle (sin, cos)(2 pi x / period), one circle per dimension.

The kernel is exp(-2 sin^2(pi d / p) / l^2), and |u - u'|^2 = 4 sin^2(pi d / p) for the points u on the circle, so its
random features are those of the RBF there. The likelihood has many modes in the period. If no period is given, the
estimator finds a start in the spectrum of the data.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.hyper import Hyper, hyper
from metaprior.kernels.hyper_kernel import HyperKernel
from metaprior.kernels.rbf import RBF
from metaprior.numerics import cosine
from metaprior.types import Leaf

#: The part of a period, in standard deviations of the inputs, that multiplies its steps. The data are about 3.5 of them
#: long, so a step of 0.1 in log period moves the phase at their ends by a fiftieth of a turn, however many turns there
#: are. Without it, the first step of Adam leaves a period that was found with a hundred turns, and does not come back.
STEP = 0.1


class Periodic(HyperKernel):
    """exp(-2 sum_d sin^2(pi (x_d - x'_d) / period_d) / lengthscale_d^2).

    With `period=None` the estimator finds a start in the data. The lengthscale has no unit: it is on the circle.
    """

    period: Hyper = hyper(
        None, per_dimension=True, unit=1, doc="The distance, per dimension, after which the function repeats."
    )
    lengthscale: Hyper = hyper(
        1.0, per_dimension=True, doc="How smooth the function is within a period: small values allow many wiggles."
    )

    def circle(self, a: Float[Leaf, "N D"]) -> Float[Array, "N D2"]:
        """Return (cos, sin)(2 pi x / period) for every dimension."""
        angle = 2 * np.pi * a / self.period
        return cosine(jnp.concatenate([angle, angle - np.pi / 2], axis=1))

    def _on_circle(self) -> RBF:
        """Return the RBF over the circles; the cosine and the sine of a dimension have the same lengthscale."""
        lengthscale = jnp.atleast_1d(jnp.asarray(self.leaf("lengthscale")))
        return RBF().with_leaves({"lengthscale": jnp.concatenate([lengthscale, lengthscale])})

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the RBF on the circles."""
        kernel = self.bound_to(a.shape[1])
        on_a = kernel.circle(a)
        return kernel._on_circle()(on_a, on_a if b is a else kernel.circle(b))

    def step_factors(self) -> "Periodic":
        """Return a factor for the period that is small where the data have many turns, and 1 for the lengthscale."""
        slow = jnp.minimum(1.0, STEP * jnp.exp(jnp.asarray(self.leaf("period"))))
        return super().step_factors().with_leaves({"period": slow})

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return ones."""
        return jnp.ones(a.shape[0], a.dtype)

    def num_normals(self, num_dims: int) -> int:
        """Return the count of an RBF in twice the dimensions."""
        return 2 * num_dims + 1

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the features of the RBF on the circles."""
        kernel = self.bound_to(a.shape[1])
        return kernel._on_circle().features(kernel.circle(a), normals)

    def unknown_periods(self) -> bool:
        """Return whether no period was given."""
        return self.leaf("period") is None

    def with_periods(self, periods: np.ndarray) -> "Periodic":
        """Return the kernel with these periods if none was given."""
        return self._replaced({"period": periods}) if self.unknown_periods() else self
