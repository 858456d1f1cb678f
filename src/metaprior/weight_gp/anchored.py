"""Anchored codes: inducing codes that are codes of real weights and move with the draw of the unit latents.

C_u(z) = [z_i(m), z_j(m)(, aux_m)], so u are (nearly) the weights themselves. What is learned about u then does not
depend on where z is, and a product q(z) q(u) leaves z as broad as the data allow. The bound contains

    - KL[q(z) || p(z)] - E_q(z) KL[q(u) || N(0, K_uu(z))],      q(u) = N(m, T T').

If the layers have few weights, all of them are anchored and u includes the weight noise: its prior covariance is
K_uu(z) + sigma_w^2 I, and u fixes every weight. If the layers have many weights, or are local, some weights are
anchored and the others follow from u by the conditional, as with free inducing codes. Without weight noise K_uu may be
nearly singular. Then u = L v, where L is the factor at the mean of q(z) and the same in every draw; q(v) is learned.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.numerics import grid_cross_entropy
from metaprior.types import Leaf
from metaprior.weight_gp.weight_noise import WeightNoise

#: Standard deviation of q(u) at the start; the prior's is about 1.
INITIAL_STD = 0.03
#: The largest number of anchors for which q(u) has a full covariance.
FULL_COVARIANCE = 64


class Placed(eqx.Module):
    """Inducing values and their codes at one draw of z: q(v) = N(mean, factor factor'), u = L v, K_uu = L L'."""

    mean: Float[Array, " M"]
    factor: Float[Array, "M M"]
    kernel_in: Kernel
    kernel_out: Kernel
    code_in: Float[Array, "M Dz"]
    code_out: Float[Array, "M Dz"]
    code_aux: Float[Leaf, "M E"] | None

    @property
    def n_inducing(self) -> int:
        """M."""
        return self.mean.shape[0]

    @property
    def latent_dim(self) -> int:
        """D_z."""
        return self.code_in.shape[1]

    @property
    def input_codes(self) -> Leaf:
        """U_aux; only a local GP has it."""
        assert self.code_aux is not None
        return self.code_aux

    def draw(self, normals: Float[Array, " M"]) -> Float[Array, " M"]:
        """Return v = mean + factor normals."""
        return self.mean + self.factor @ normals


class Anchored(eqx.Module):
    """q(u) at the codes of chosen weights; `whole` means that these are all weights, in the order of the layers."""

    mean: Float[Leaf, " M"]
    log_diagonal: Float[Leaf, " M"]
    below_diagonal: Float[Leaf, "M M"] | None
    kernel_in: Kernel
    kernel_out: Kernel
    code_aux: Float[Leaf, "M E"] | None
    units_in: tuple[int, ...] = eqx.field(static=True)
    units_out: tuple[int, ...] = eqx.field(static=True)
    whole: bool = eqx.field(static=True)
    latent_dim: int = eqx.field(static=True)

    @classmethod
    def initial(
        cls,
        kernels: tuple[Kernel, Kernel],
        units: tuple[np.ndarray, np.ndarray],
        code_aux: np.ndarray | None,
        latent_dim: int,
        rng: np.random.Generator,
        *,
        whole: bool,
    ) -> "Anchored":
        """Start from random means with the prior's spread, and standard deviation `INITIAL_STD`."""
        count = len(units[0])
        below = np.zeros((count, count)) if count <= FULL_COVARIANCE else None
        units_in, units_out = (tuple(int(u) for u in side) for side in units)
        mean, spread = rng.standard_normal(count), np.full(count, np.log(INITIAL_STD))
        return cls(mean, spread, below, *kernels, code_aux, units_in, units_out, whole, latent_dim)

    @property
    def n_inducing(self) -> int:
        """M."""
        return len(self.units_in)

    @property
    def input_codes(self) -> Leaf:
        """U_aux; only a local GP has it."""
        if self.code_aux is None:
            raise ValueError("input_codes: expected a local GP; this GP is global, so its codes have no input block.")
        return self.code_aux

    def codes(self, z: Float[Array, "U Dz"]) -> tuple[Array, Array]:
        """Return the input-unit and output-unit blocks of the codes at a draw of the latents."""
        return z[np.array(self.units_in)], z[np.array(self.units_out)]

    def posterior(self, root: Float[Array, "M M"] | None) -> "Posterior":
        """Return q(u). `root` is the factor of K_uu at the mean of q(z), or None if all weights are anchored."""
        spread = jnp.exp(self.log_diagonal)
        log_determinant = jnp.sum(self.log_diagonal)
        factor = spread if self.below_diagonal is None else self._below + jnp.diag(spread)
        if root is None:
            return Posterior(jnp.asarray(self.mean), factor, log_determinant)
        factor = root * factor if factor.ndim == 1 else root @ factor
        return Posterior(root @ self.mean, factor, log_determinant + jnp.sum(jnp.log(jnp.diagonal(root))))

    @property
    def _below(self) -> Float[Array, "M M"]:
        assert self.below_diagonal is not None
        mask = np.tril(np.ones(self.below_diagonal.shape), -1)
        return self.below_diagonal * mask.astype(self.mean.dtype)

    def noise_of_values(self, z: Float[Array, "U Dz"], weight_noise: WeightNoise) -> Float[Array, " M"]:
        """Return the standard deviation of the weight noise that u includes: 0 unless all weights are anchored."""
        if not self.whole:
            return jnp.zeros(self.n_inducing, z.dtype)
        code_in, code_out = self.codes(z)
        return weight_noise.std_in(code_in) * weight_noise.std_out(code_out)

    def gram(
        self, z: Float[Array, "U Dz"], input_kernel: Kernel | None, weight_noise: WeightNoise
    ) -> Float[Array, "M M"]:
        """Return K_uu(z), plus the variance of the weight noise if u includes it."""
        code_in, code_out = self.codes(z)
        gram = self.kernel_in(code_in, code_in) * self.kernel_out(code_out, code_out)
        if input_kernel is not None:
            gram = gram * input_kernel(self.input_codes, self.input_codes)
        return gram + jnp.diag(self.noise_of_values(z, weight_noise) ** 2)

    def kl_on_grid(
        self, z_in: Float[Array, "I Dz"], z_out: Float[Array, "J Dz"], noise: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Return KL[q(u) || p(u | z)] for all weights of one global layer, whose K_uu = K_in (x) K_out + noise^2 I.

        q(u) must be mean-field. Cost I^3 + J^3 + I J (I + J) instead of (I J)^3.
        """
        shape = (z_in.shape[0], z_out.shape[0])
        gram_in, gram_out = self.kernel_in(z_in, z_in), self.kernel_out(z_out, z_out)
        variance = jnp.exp(2 * self.log_diagonal).reshape(shape)
        cross = grid_cross_entropy(gram_in, gram_out, noise**2, self.mean.reshape(shape), variance)
        return cross - 0.5 * self.n_inducing - jnp.sum(self.log_diagonal)

    def placed(self, z: Float[Array, "U Dz"], posterior: "Posterior", inverse_root: Float[Array, "M M"]) -> Placed:
        """Return the whitened inducing values at a draw of the latents: mean L^-1 m, factor L^-1 T."""
        mean, factor = inverse_root @ posterior.mean, posterior.times(inverse_root)
        return Placed(mean, factor, self.kernel_in, self.kernel_out, *self.codes(z), self.code_aux)


class Posterior(eqx.Module):
    """q(u) = N(mean, T T'). `factor` is T, or its diagonal if T is diagonal."""

    mean: Float[Array, " M"]
    factor: Float[Array, "M *M"]
    log_determinant: Float[Array, ""]

    def draw(self, normals: Float[Array, " M"]) -> Float[Array, " M"]:
        """Return u = m + T normals."""
        return self.mean + (self.factor * normals if self.factor.ndim == 1 else self.factor @ normals)

    def times(self, matrix: Float[Array, "M M"]) -> Float[Array, "M M"]:
        """Return matrix T."""
        return matrix * self.factor if self.factor.ndim == 1 else matrix @ self.factor

    def kl(self, inverse_root: Float[Array, "M M"]) -> Float[Array, ""]:
        """Return KL[q(u) || N(0, L L')] for a given L^-1. Cost M^2, or M^3 if T is a full matrix."""
        squares = jnp.sum((inverse_root @ self.mean) ** 2) + jnp.sum(self.times(inverse_root) ** 2)
        log_determinants = jnp.sum(jnp.log(jnp.diagonal(inverse_root))) + self.log_determinant
        return 0.5 * (squares - self.mean.shape[0]) - log_determinants
