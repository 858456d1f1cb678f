"""`pseudo_observations`: for any likelihood and rows in batches; the last layer of Ober and Aitchison (2021).

At M inducing rows, which are mapped through the same draw below, q(f~ | draw) is proportional to
p(f~ | draw) N(t; f~, D), where the targets t and the diagonal D are learned. With S = D^-1/2 and B = I + S K S,

    E f(x) = m + k(x)' S B^-1 S (t - m),   cov = K - k(x)' S B^-1 S k(x'),
    KL[q(f~) || p(f~)] = (tr B^-1 - M + log |B| + alpha' K alpha) / 2,   alpha = S B^-1 S (t - m).

The learned t and D do not depend on the draw, but q(f~) does. If the functions have different meanings (a mean and a
noise), each has its own D, and the cost is B K (M K)^2 + (M K)^3. Functions with the same meaning, one for every class,
share the D of a row. If they also separate (`independent_outputs`), the cost is B K M^2 + K M^3.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.likelihoods import Likelihood
from metaprior.numerics import jittered_inverse_root
from metaprior.output_layer.base import Batch, FunctionGP, ObservedRows, OutputLayer, by_output
from metaprior.output_layer.independent_outputs import ObservedInBasis
from metaprior.types import Leaf


class PseudoObservations(OutputLayer):
    """The output layer given by pseudo-observations at inducing rows, with one precision per value or per row."""

    points: Float[Leaf, "M D"]
    targets: Float[Leaf, "M K"]
    log_precision: Float[Leaf, "M J"]
    takes_all_rows: bool = eqx.field(static=True, init=False, default=False)

    @classmethod
    def initial(cls, points: np.ndarray, targets: np.ndarray, *, alike: bool) -> "PseudoObservations":
        """Start from rows of the data and their targets, with precision 1; `alike` outputs share that of a row."""
        return cls(points, targets, np.zeros((len(targets), 1 if alike else targets.shape[1])))

    def bound(
        self, gp: FunctionGP, likelihood: Likelihood, batch: Batch, normals: Float[Array, "B R"]
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Return the expected log likelihood of a batch, and the KL of the functions."""
        posterior = self.conditioned(gp, likelihood)
        mean, covariance = posterior.moments(jnp.asarray(batch.x))
        # Rows with weight 0 may contain any y: keep it out of sums and derivatives (0 times NaN is NaN).
        y = jnp.where(batch.weight[:, None] > 0, batch.y, 0)
        expected = likelihood.expected_log_prob(mean, covariance, y, normals)
        return jnp.sum(expected * batch.weight), {"kl_f": posterior.kl()}

    def conditioned(self, gp: FunctionGP, likelihood: Likelihood) -> ObservedRows | ObservedInBasis:
        """Return the posterior of the functions given a draw."""
        at, targets = gp.rows(self.points), jnp.asarray(self.targets)
        root = jnp.exp(0.5 * jnp.asarray(self.log_precision))
        if root.shape[1] < targets.shape[1] and gp.prior.is_separable:
            return ObservedInBasis.of(gp, at, targets.T, 1 / root[:, 0])
        root = by_output(jnp.broadcast_to(root, targets.shape))
        gram = gp.prior.covariance(at, at)
        small = jnp.eye(len(gram), dtype=gram.dtype) + root * gram * root[:, None]
        explained = jittered_inverse_root(small, jnp.zeros((), gram.dtype))[0] * root
        return ObservedRows.of(gp, at, explained, by_output(targets) - gp.prior.mean(at).ravel(), 1 / root)

    def with_rows(self, rows: Batch) -> "PseudoObservations":
        """Return the regime itself, because the pseudo-observations replace the data."""
        return self

    def row_normals(self, likelihood: Likelihood, num_outputs: int) -> int:
        """Return how many normals the expectation of the likelihood needs."""
        return likelihood.num_expectation_normals(num_outputs)
