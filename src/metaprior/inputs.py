"""The argument of the input kernel: eps = x, or eps = g(V x), a chain of linear maps with a prior (paper, section 3.1).

V has prior N(0, I) and a diagonal Gaussian q(V). Each map divides by the square root of its input size, so that
standardised data have projections of unit spread under the prior. Without this, the prior shrinks V until the input
kernel has no effect.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.latents import gaussian_kl
from metaprior.networks.activations import Activation, activation_named
from metaprior.random import take
from metaprior.types import Leaf

INITIAL_STD = 0.05


class Projection:
    """The form of eps = g(V x): the sizes of the maps, and the function after each map.

    Parameters
    ----------
    dims : sequence of int
        The output size of each map; the last is D_aux.
    activation : str or callable
        g, applied after every map.
    """

    def __init__(self, dims: Sequence[int] = (2,), activation: str | Activation = "identity") -> None:
        """Check and store the sizes and the activation."""
        self.dims, self.activation = tuple(dims), activation
        if not self.dims or any(not isinstance(d, int | np.integer) or d < 1 for d in self.dims):
            raise ValueError(f"Projection: dims must be positive whole numbers; got {dims!r}.")
        activation_named(activation)

    def __repr__(self) -> str:
        """Show the call of the constructor."""
        return f"Projection(dims={self.dims}, activation={self.activation!r})"


class InputMap(eqx.Module):
    """eps = g(V_k ... g(V_1 x)) with q(V); without maps, eps = x."""

    means: tuple[Leaf, ...]
    log_stds: tuple[Leaf, ...]
    activation: Activation = eqx.field(static=True)

    @classmethod
    def identity(cls) -> "InputMap":
        """Return the map eps = x."""
        return cls((), (), activation_named("identity"))

    @classmethod
    def initial(cls, num_inputs: int, projection: Projection, rng: np.random.Generator) -> "InputMap":
        """Start from a draw of the prior as the mean, with standard deviation `INITIAL_STD`."""
        sizes = (num_inputs, *projection.dims)
        means = tuple(rng.standard_normal((b, a)) for a, b in zip(sizes[:-1], sizes[1:], strict=True))
        return cls(
            means,
            tuple(np.full_like(m, np.log(INITIAL_STD)) for m in means),
            activation_named(projection.activation),
        )

    @property
    def num_normals(self) -> int:
        """The number of normals that a draw needs."""
        return int(sum(np.prod(m.shape) for m in self.means))

    def draw(self, normals: Float[Array, " n"]) -> list[Array]:
        """Return the drawn matrices."""
        parts = take(normals, *[m.shape for m in self.means])
        return [jnp.exp(s) * n + m for m, s, n in zip(self.means, self.log_stds, parts, strict=True)]

    def __call__(self, matrices: Sequence[Array], x: Float[Array, "B D"]) -> Float[Array, "B E"]:
        """Return eps for drawn matrices."""
        for v in matrices:
            x = self.activation(x @ v.T / np.sqrt(v.shape[1]).astype(x.dtype))
        return x

    def kl(self) -> Float[Array, ""]:
        """Return KL[q(V) || N(0, I)]."""
        total = jnp.zeros(())
        for mean, log_std in zip(self.means, self.log_stds, strict=True):
            total = total + gaussian_kl(mean, log_std)
        return total
