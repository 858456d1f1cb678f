"""`pseudo_observations`: any likelihood, rows in batches; the last layer of Ober and Aitchison (2021).

At M inducing rows, which pass through the same draw below, q(f~ | draw) is proportional to p(f~ | draw) N(t; f~, D),
with targets t and a diagonal D that are learned. With S = D^-1/2 and B = I + S K S,

    E f(x) = m + k(x)' S B^-1 S (t - m),   cov = K - k(x)' S B^-1 S k(x'),
    KL[q(f~) || p(f~)] = (tr B^-1 - M + log |B| + alpha' K alpha) / 2,   alpha = S B^-1 S (t - m).

What is learned does not know the draw, and yet q(f~) follows it. Cost B M^2 + M^3 (M counts rows times outputs).
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.leaves import Leaf
from metaprior.likelihoods import Likelihood
from metaprior.numerics import jittered_inverse_root
from metaprior.output_layer.base import Batch, FunctionGP, ObservedRows, OutputLayer, by_output


class PseudoObservations(OutputLayer):
    """The output layer known through pseudo-observations at inducing rows."""

    points: Float[Leaf, "M D"]
    targets: Float[Leaf, "M K"]
    log_precision: Float[Leaf, "M K"]
    takes_all_rows: bool = eqx.field(static=True, init=False, default=False)

    @classmethod
    def initial(cls, points: np.ndarray, targets: np.ndarray) -> "PseudoObservations":
        """Start from rows of the data and what they say, each with the precision of one."""
        return cls(points, targets, np.zeros_like(targets))

    def bound(
        self, gp: FunctionGP, likelihood: Likelihood, batch: Batch, normals: Float[Array, "B R"]
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Return the expected log likelihood of a batch, and the KL of the functions."""
        posterior = self.conditioned(gp, likelihood)
        mean, covariance = posterior.moments(jnp.asarray(batch.x))
        # rows that weigh nothing may hold any y: keep it out of sums and derivatives (0 times NaN is NaN)
        y = jnp.where(batch.weight[:, None] > 0, batch.y, 0)
        expected = likelihood.expected_log_prob(mean, covariance, y, normals)
        return jnp.sum(expected * batch.weight), {"kl_f": self._kl(gp, posterior)}

    def _kl(self, gp: FunctionGP, posterior: ObservedRows) -> Float[Array, ""]:
        gram = gp.prior.covariance(posterior.at, posterior.at)
        # L_B^-1 = explained D^1/2, and tr B^-1 = |L_B^-1|^2
        inverse_root = posterior.explained * posterior.noise
        spread = jnp.sum(inverse_root**2) - len(gram)
        return 0.5 * (spread + posterior.alpha @ gram @ posterior.alpha) - jnp.sum(jnp.log(jnp.diagonal(inverse_root)))

    def conditioned(self, gp: FunctionGP, likelihood: Likelihood) -> ObservedRows:
        """Return the posterior of the functions given a draw."""
        at = gp.rows(self.points)
        root = jnp.exp(0.5 * by_output(jnp.asarray(self.log_precision)))
        gram = gp.prior.covariance(at, at)
        small = jnp.eye(len(gram), dtype=gram.dtype) + root * gram * root[:, None]
        explained = jittered_inverse_root(small, jnp.zeros((), gram.dtype))[0] * root
        observed = by_output(jnp.asarray(self.targets)) - gp.prior.mean(at).ravel()
        alpha = explained.T @ (explained @ observed)
        return ObservedRows(gp, at, alpha, explained, None, observed, 1 / root)

    def with_rows(self, rows: Batch) -> "PseudoObservations":
        """Keep none: the pseudo-observations say all."""
        return self

    def row_normals(self, likelihood: Likelihood, num_outputs: int) -> int:
        """Return what the likelihood's expectation takes."""
        return likelihood.num_expectation_normals(num_outputs)
