"""The output weights given everything below are Gaussian, so the outputs of the network are a GP.

f_o(x) = sum_i s_i h_i(x) (f(z_i, z_o, x) + sigma_w n_io) is linear in the output weights, which are Gaussian given
the unit latents z. With phi = s h, the scaled activations of the last hidden layer (including its bias unit),

    cov(f_o(x), f_o'(x')) = k_out(z_o, z_o') k_aux(x, x') phi(x)' K_in phi(x') + [o = o'] phi(x)' Sigma_w phi(x')

where Sigma_w is the diagonal matrix of weight-noise variances, and k_aux = 1 in a global layer. The weight noise is the
same at all inputs, or with `local_noise` follows the input kernel as f does: then nothing is known far from the data.

If the layer shares its GP with layers below, the values u that were drawn there are known: the mean is G alpha, and
G K_uu^-1 G' is subtracted from the covariance, with G[(n, o), m] = (phi E_in)[n, m] a[n, m] E_out[o, m]. If not, and
the weight noise is the same for all outputs, the outputs are independent in the eigenbasis of K_out (`is_separable`),
and no matrix needs to be as large as rows times outputs.
"""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.kernels import Kernel
from metaprior.kernels.compose import additive_parts
from metaprior.numerics import jittered_cholesky
from metaprior.random import take
from metaprior.types import Leaf


class OutputRows(NamedTuple):
    """The inputs of the output layer: phi, the activations below times the scale of their weights, and eps."""

    phi: Float[Array, "B I"]
    eps: Float[Array, "B E"]


class KnownValues(NamedTuple):
    """Values u of the output layer's GP that were drawn below it, at codes c_m = [in_m, out_m(, aux_m)]."""

    cross_in: Float[Array, "I M"]
    cross_out: Float[Array, "K M"]
    inverse_root: Float[Array, "M M"]
    alpha: Float[Array, " M"]
    code_aux: Leaf | None
    #: For drawing functions: Gram matrices of the units joined with the codes, and the weight noise included in u.
    joined_in: Float[Array, "A A"]
    joined_out: Float[Array, "C C"]
    noise: Float[Array, " M"]

    @property
    def input_codes(self) -> Leaf:
        """U_aux; only a local GP has it."""
        assert self.code_aux is not None
        return self.code_aux


class OutputPrior(eqx.Module):
    """The Gaussian prior of the output weights, and of the network's outputs, given a draw of everything below.

    If `std_out` is None, the weight noise is the same for all outputs.
    """

    gram_in: Float[Array, "I I"]
    gram_out: Float[Array, "K K"]
    std_in: Float[Array, " I"]
    std_out: Float[Array, " K"] | None
    scale: Float[Array, " I"]
    kernel: Kernel | None
    known: KnownValues | None
    jitter: float = eqx.field(static=True, default=1e-6)
    local_noise: bool = eqx.field(static=True, default=False)

    @property
    def num_outputs(self) -> int:
        """K."""
        return self.gram_out.shape[0]

    @property
    def is_separable(self) -> bool:
        """Whether the covariance is K_out (x) signal + I (x) white: no known values, equal noise for all outputs."""
        return self.known is None and self.std_out is None

    @property
    def _variance_out(self) -> Float[Array, " K"]:
        return jnp.ones(self.num_outputs, self.gram_out.dtype) if self.std_out is None else self.std_out**2

    def mean(self, rows: OutputRows) -> Float[Array, "K B"]:
        """Return the prior mean: 0, or the mean given the known values. Cost B (I + K) M."""
        if self.known is None:
            return jnp.zeros((self.num_outputs, rows.phi.shape[0]), rows.phi.dtype)
        return self.known.cross_out @ (self._inner(rows) * self.known.alpha).T

    def parts(self, a: OutputRows, b: OutputRows) -> tuple[Float[Array, "A B"], Float[Array, "A B"]]:
        """Return the covariances of two sets of rows due to f and to the weight noise, for outputs of variance 1."""
        signal = (a.phi @ self.gram_in) @ b.phi.T
        white = (a.phi * self.std_in**2) @ b.phi.T
        if self.kernel is not None:
            level = self.kernel(a.eps, b.eps)
            signal, white = signal * level, white * level if self.local_noise else white
        return signal, white

    def own_parts(self, rows: OutputRows) -> tuple[Float[Array, " B"], Float[Array, " B"]]:
        """Return the variances of every row due to f and to the weight noise. Cost B I^2."""
        signal = jnp.sum((rows.phi @ self.gram_in) * rows.phi, axis=1)
        white = jnp.sum((rows.phi * self.std_in) ** 2, axis=1)
        if self.kernel is not None:
            level = self.kernel.diagonal(rows.eps)
            signal, white = signal * level, white * level if self.local_noise else white
        return signal, white

    def covariance(self, a: OutputRows, b: OutputRows) -> Float[Array, "KA KB"]:
        """Return the covariance of all outputs at two sets of rows, ordered by output. Cost K^2 A B + A B I."""
        signal, white = self.parts(a, b)
        # [o, n, o', n']
        total = self.gram_out[:, None, :, None] * signal[:, None, :]
        total = total + jnp.diag(self._variance_out)[:, None, :, None] * white[:, None, :]
        if self.known is not None:
            total = total - jnp.einsum("onm,pqm->onpq", self._explained(a), self._explained(b))
        return total.reshape(self.num_outputs * a.phi.shape[0], -1)

    def additive_parts(self) -> "list[OutputPrior]":
        """Return the priors of independent functions that add up to the outputs.

        There is one for every additive part of the input kernel and, unless it follows the kernel, one for the weight
        noise. Where values are known, the functions are independent only before these are.
        """
        if self.kernel is None:
            return [self]
        std_in = self.std_in if self.local_noise else jnp.zeros_like(self.std_in)
        own = [dataclasses.replace(self, kernel=kernel, std_in=std_in) for kernel in additive_parts(self.kernel)]
        if self.local_noise:
            return own
        return [*own, dataclasses.replace(self, gram_in=jnp.zeros_like(self.gram_in), known=None)]

    def own_covariance(self, rows: OutputRows) -> Float[Array, "B K K"]:
        """Return the covariance of the outputs at each row. Cost B (I^2 + K^2)."""
        signal, white = self.own_parts(rows)
        total = signal[:, None, None] * self.gram_out + white[:, None, None] * jnp.diag(self._variance_out)
        if self.known is not None:
            explained = self._explained(rows)
            total = total - jnp.einsum("onm,pnm->nop", explained, explained)
        return total

    def weights(self) -> tuple[Float[Array, " KI"], Float[Array, "KI KI"]]:
        """Return mean and covariance of the weights themselves, output after output; only without an input kernel.

        Cost (K I)^2, times M where values are known.
        """
        assert self.kernel is None
        size = self.num_outputs * self.gram_in.shape[0]
        covariance = jnp.kron(self.gram_out, self.gram_in)
        covariance = covariance + jnp.diag(jnp.kron(self._variance_out, self.std_in**2))
        if self.known is None:
            return jnp.zeros(size, covariance.dtype), covariance
        at_codes = (self.known.cross_out[:, None, :] * self.known.cross_in).reshape(size, -1)
        explained = at_codes @ self.known.inverse_root.T
        return at_codes @ self.known.alpha, covariance - explained @ explained.T

    def spread(
        self, coefficients: Float[Array, "*j K A"], at: OutputRows, part: "OutputPrior", rows: OutputRows
    ) -> Float[Array, "*j K B"]:
        """Return coefficients times the covariance of the outputs at rows `at` with one of their `additive_parts`.

        The full matrix is never made. Cost A B (I + J K), and (A + B) I J K for weight noise that no kernel modulates.
        """
        level = None if part.kernel is None else part.kernel(at.eps, rows.eps)
        signal = (at.phi @ part.gram_in) @ rows.phi.T
        total = (self.gram_out @ coefficients) @ (signal if level is None else signal * level)
        noise, columns = self._variance_out[:, None] * coefficients, at.phi * part.std_in**2
        if level is not None and part.local_noise:
            total = total + noise @ (columns @ rows.phi.T * level)
        else:
            total = total + (noise @ columns) @ rows.phi.T
        if self.known is not None and part.known is not None:
            inner = jnp.einsum("onm,...on->...m", self._explained(at), coefficients)
            total = total - jnp.einsum("obm,...m->...ob", part._explained(rows), inner)
        return total

    def _inner(self, rows: OutputRows) -> Float[Array, "B M"]:
        assert self.known is not None
        inner = rows.phi @ self.known.cross_in
        if self.kernel is not None:
            inner = inner * self.kernel(rows.eps, self.known.input_codes)
        return inner

    def _explained(self, rows: OutputRows) -> Float[Array, "K B M"]:
        """Return G L^-T, whose outer product is the covariance that the known values explain."""
        assert self.known is not None
        columns = self.known.cross_out[:, None, :] * self._inner(rows)
        return columns @ self.known.inverse_root.T

    # --- functions ------------------------------------------------------------------

    def _draw_shapes(self, num_features: int, num_dims: int) -> list[tuple[int, ...]]:
        known = 0 if self.known is None else self.known.alpha.shape[0]
        num_in, num_out = self.gram_in.shape[0], self.num_outputs
        spectral = 0 if self.kernel is None else self.kernel.num_normals(num_dims)
        count = 1 if self.kernel is None else num_features
        white = (count if self.local_noise else 1, num_in, num_out)
        return [(spectral, count), (count, num_in + known, num_out + known), white, (known,)]

    def num_normals(self, num_features: int, num_dims: int) -> int:
        """Return how many normals one function drawn from the prior needs."""
        return int(sum(np.prod(shape) for shape in self._draw_shapes(num_features, num_dims)))

    def function(self, normals: Float[Array, " n"], num_features: int, num_dims: int) -> "PriorFunction":
        """Return a function drawn from the prior, minus the prior mean, by random features of the input kernel.

        The draw is exact for a global layer. For a local layer, its first two moments are exact for any `num_features`.
        """
        spectral, grid, white, own_normals = take(normals, *self._draw_shapes(num_features, num_dims))
        joined_in = self.gram_in if self.known is None else self.known.joined_in
        joined_out = self.gram_out if self.known is None else self.known.joined_out
        jitter = jnp.asarray(self.jitter, normals.dtype)
        root_in, root_out = jittered_cholesky(joined_in, jitter)[0], jittered_cholesky(joined_out, jitter)[0]
        values = jnp.einsum("ia,fab,ob->fio", root_in, grid, root_out) / np.sqrt(grid.shape[0]).astype(normals.dtype)
        num_in, num_out = self.gram_in.shape[0], self.num_outputs
        update = None
        if self.known is not None:
            m = np.arange(len(own_normals))
            at_codes = values[:, num_in + m, num_out + m]
            if self.kernel is not None:
                at_codes = at_codes * self.kernel.features(self.known.input_codes, spectral).T
            drawn = jnp.sum(at_codes, axis=0) + self.known.noise * own_normals
            update = -(self.known.inverse_root.T @ (self.known.inverse_root @ drawn))
        own = self.std_in[:, None] * white * jnp.sqrt(self._variance_out)
        values = values[:, :num_in, :num_out]
        if self.local_noise and self.kernel is not None:
            values, own = values + own / np.sqrt(len(own)).astype(normals.dtype), jnp.zeros_like(own[:1])
        return PriorFunction(self, spectral, values, own[0], update)


class PriorFunction(eqx.Module):
    """One function drawn from the prior, minus the prior mean: coefficients of the features, and weight noise."""

    prior: OutputPrior
    spectral: Float[Array, "R F"]
    values: Float[Array, "F I K"]
    white: Float[Array, "I K"]
    update: Float[Array, " M"] | None

    def __call__(self, rows: OutputRows) -> Float[Array, "K B"]:
        """Return the function's values at rows. Cost B I F K."""
        if self.prior.kernel is None:
            signal = (rows.phi @ self.values[0]).T
        else:
            each = jnp.einsum("bi,fio->obf", rows.phi, self.values)
            signal = jnp.sum(each * self.prior.kernel.features(rows.eps, self.spectral), axis=-1)
        total = signal + (rows.phi @ self.white).T
        if self.update is not None and self.prior.known is not None:
            total = total + self.prior.known.cross_out @ (self.prior._inner(rows) * self.update).T
        return total
