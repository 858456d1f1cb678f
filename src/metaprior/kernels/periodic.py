"""The periodic kernel: an RBF on the circle (sin, cos)(2 pi x / period), one circle a dimension.

exp(-2 sin^2(pi d / p) / l^2), and |u - u'|^2 = 4 sin^2(pi d / p) for the points u on the circle, so the random
features are those of the RBF there. The likelihood is multi-modal in the period: it starts from the spectrum
of the data when none is given.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels.base import Hyper, HyperKernel, checked_bounds, checked_names, log_positive
from metaprior.kernels.rbf import RBF
from metaprior.numerics import cosine
from metaprior.types import Leaf


class Periodic(HyperKernel):
    """exp(-2 sum_d sin^2(pi (x_d - x'_d) / period_d) / lengthscale_d^2).

    `period=None` asks the estimator to find it in the data. The lengthscale has no unit: it is on the circle.
    """

    log_period: Leaf | None
    log_lengthscale: Leaf

    def __init__(
        self,
        period: Hyper = None,
        lengthscale: Hyper = 1.0,
        *,
        fixed: Sequence[str] = (),
        bounds: dict[str, tuple[float, float]] | None = None,
    ) -> None:
        """Take natural values; a period is in the units of the data."""
        log = log_positive("Periodic", "lengthscale", lengthscale)
        self.log_lengthscale = np.zeros(()) if log is None else log
        self.log_period = log_positive("Periodic", "period", period)
        self.fixed = checked_names("Periodic", self.hypers(), fixed)
        self.bounds = checked_bounds("Periodic", self.hypers(), bounds)

    @property
    def lengthscale(self) -> Array:
        """How smooth one period is: small values, many wiggles."""
        return jnp.exp(self.log_lengthscale)

    @property
    def period(self) -> Array:
        """The distance after which the function repeats."""
        if self.log_period is None:
            raise ValueError(
                "Periodic: the period is not known yet; give `period=`, or fit through an estimator, "
                "which starts it from the spectrum of the data."
            )
        return jnp.exp(self.log_period)

    def circle(self, a: Float[Leaf, "N D"]) -> Float[Array, "N D2"]:
        """Return (cos, sin)(2 pi x / period) for every dimension."""
        angle = 2 * np.pi * a / self.period
        return cosine(jnp.concatenate([angle, angle - np.pi / 2], axis=1))

    def _on_circle(self) -> RBF:
        lengthscale = jnp.atleast_1d(self.log_lengthscale)
        return RBF().with_leaves({"lengthscale": jnp.concatenate([lengthscale, lengthscale])})

    def __call__(self, a: Float[Leaf, "N D"], b: Float[Leaf, "M D"]) -> Float[Array, "N M"]:
        """Return the RBF on the circles."""
        kernel = self.bound_to(a.shape[1]) if np.shape(self.log_lengthscale) != (a.shape[1],) else self
        on_a = kernel.circle(a)
        return kernel._on_circle()(on_a, on_a if b is a else kernel.circle(b))

    def diagonal(self, a: Float[Leaf, "N D"]) -> Float[Array, " N"]:
        """Return ones."""
        return jnp.ones(a.shape[0], a.dtype)

    def num_normals(self, num_dims: int) -> int:
        """Those of an RBF in twice the dimensions."""
        return 2 * num_dims + 1

    def features(self, a: Float[Leaf, "N D"], normals: Float[Leaf, "R F"]) -> Float[Array, "N F"]:
        """Return the RBF's features on the circles."""
        kernel = self.bound_to(a.shape[1]) if np.shape(self.log_lengthscale) != (a.shape[1],) else self
        return kernel._on_circle().features(kernel.circle(a), normals)

    def per_dimension(self) -> tuple[str, ...]:
        """One period and one lengthscale a dimension."""
        return ("period", "lengthscale")

    def standardised(self, scale: np.ndarray) -> "Periodic":
        """Convert the period."""
        return self if self.log_period is None else self.rescaled("period", -np.log(scale))

    def unknown_periods(self) -> bool:
        """Return whether no period was given."""
        return self.log_period is None

    def with_periods(self, periods: np.ndarray) -> "Periodic":
        """Return the kernel with periods where none was given."""
        if self.log_period is not None:
            return self
        log = log_positive("Periodic", "period", periods)
        return eqx.tree_at(lambda k: k.log_period, self, log, is_leaf=lambda leaf: leaf is None)
