"""The posterior of outputs with a separable prior and shared observation noise, which separates into K problems.

If cov(f_o(x), f_p(x')) = K_out[o, p] signal(x, x') + [o = p] white(x, x') and the noise of an observation is the
same for all outputs of a row, the eigenvectors U of K_out turn the outputs into independent functions g = U' f with

    cov(g_r(x), g_r(x')) = lambda_r signal(x, x') + white(x, x').

Each function is observed separately, so K matrices of size R replace one of size K R. Cost K R^3, plus K R^2 for every
row of a prediction.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.numerics import eigenvectors, jittered_inverse_root
from metaprior.output_layer.base import ConditionedRows, FunctionGP, kl_of_observing
from metaprior.weight_gp import OutputPrior, OutputRows


class ObservedInBasis(ConditionedRows):
    """The posterior after observing f with the same noise for all outputs of a row; the prior must be separable."""

    values: Float[Array, " K"]
    vectors: Float[Array, "K K"]
    alpha: Float[Array, "K R"]
    explained: Float[Array, "K R R"]
    observed: Float[Array, "K R"]
    noise: Float[Array, " R"]

    @classmethod
    def of(
        cls, gp: FunctionGP, at: OutputRows, observed: Float[Array, "K R"], noise: Float[Array, " R"]
    ) -> "ObservedInBasis":
        """Return the posterior given these observed values."""
        values, vectors = eigenvectors(gp.prior.gram_out)
        signal, white = gp.prior.parts(at, at)
        eye, none = jnp.eye(len(noise), dtype=noise.dtype), jnp.zeros((), noise.dtype)

        def one(value: Float[Array, ""]) -> Float[Array, "R R"]:
            small = eye + (value * signal + white) / noise / noise[:, None]
            return jittered_inverse_root(small, none)[0] / noise

        explained = jax.vmap(one)(values)
        turned = vectors.T @ observed
        alpha = jnp.einsum("ksr,kst,kt->kr", explained, explained, turned)
        return cls(gp, at, values, vectors, alpha, explained, turned, noise)

    def moments_of_part(self, part: OutputPrior, rows: OutputRows) -> tuple[Float[Array, "B K"], Float[Array, "B K K"]]:
        """Return the mean and the covariance of the outputs at each row. Cost B K R^2 + B K^3."""
        signal, white = part.parts(self.at, rows)
        own_signal, own_white = part.own_parts(rows)
        cross = self.values[:, None, None] * signal + white
        left = self.values[:, None] * own_signal + own_white - jnp.sum((self.explained @ cross) ** 2, axis=1)
        mean = jnp.einsum("kr,krb->bk", self.alpha, cross)
        covariance = jnp.einsum("ok,kb,pk->bop", self.vectors, jnp.maximum(left, 0), self.vectors)
        return mean @ self.vectors.T, covariance

    def covariance_of_part(self, part: OutputPrior, a: OutputRows, b: OutputRows) -> Float[Array, "KA KB"]:
        """Return the covariance of the independent functions, mapped back. Cost K (A + B) R^2 + K A B (R + K^2)."""

        def of(left: OutputRows, right: OutputRows) -> Float[Array, "K L R"]:
            signal, white = part.parts(left, right)
            return self.values[:, None, None] * signal + white

        on_a, on_b = (self.explained @ of(self.at, rows) for rows in (a, b))
        own = of(a, b) - jnp.einsum("kra,krb->kab", on_a, on_b)
        total = jnp.einsum("ok,kab,pk->oapb", self.vectors, own, self.vectors)
        return total.reshape(part.num_outputs * a.phi.shape[0], -1)

    def update(self, prior_values: Float[Array, "K R"], normals: Float[Array, "K R"]) -> Float[Array, "K R"]:
        """Return (K + noise^2)^-1 (observed - f - noise normals), computed in the eigenbasis and mapped back."""
        gap = self.observed - self.vectors.T @ prior_values - self.noise * normals
        return self.vectors @ jnp.einsum("ksr,kst,kt->kr", self.explained, self.explained, gap)

    def kl(self) -> Float[Array, ""]:
        """Return KL[q(f at the rows) || p], summed over the independent functions."""
        signal, white = self.gp.prior.parts(self.at, self.at)

        def one(value: Array, explained: Array, alpha: Array) -> Float[Array, ""]:
            return kl_of_observing(explained * self.noise, value * signal + white, alpha)

        return jnp.sum(jax.vmap(one)(self.values, self.explained, self.alpha))
