"""The interface of a likelihood: p(y | f), with its moments, its distribution function and its quadrature nodes.

f has one column per function of the network, and y one column per output (class labels are whole numbers in one
column). Everything a prediction needs follows from these: moments by averaging over draws, quantiles by inverting the
averaged distribution function, and entropies by nodes y_r with weights w_r such that E[g(y) | f] = sum_r w_r g(y_r).
If the nodes are few for the dimension, each draw of f shifts them differently; all draws together form a fine lattice.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.numerics import small_cholesky
from metaprior.types import Leaf

NUM_NODES = 16
#: The least number of values from which the ranked probability score of a mixture is computed: in all, and per draw.
NUM_VALUES, NUM_VALUES_A_DRAW = 4096, 64
#: The number of nodes for the expectation over one Gaussian function, and of draws for several functions.
NUM_EXPECTATION_NODES, NUM_EXPECTATION_DRAWS = 32, 4
GOLDEN = (np.sqrt(5) - 1) / 2


class Likelihood(eqx.Module):
    """p(y | f)."""

    @abc.abstractmethod
    def log_prob(self, f: Float[Array, "*b K"], y: Float[Array, "*c P"]) -> Float[Array, "*d"]:
        """Return log p(y | f), summed over outputs; y may have fewer leading axes than f."""

    @abc.abstractmethod
    def mean(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return E[y | f]."""

    @abc.abstractmethod
    def variance(self, f: Float[Array, "*b K"]) -> Float[Array, "*b P"]:
        """Return var[y | f]."""

    @abc.abstractmethod
    def nodes(
        self, f: Float[Array, "*b K"], turn: Leaf | float = 0.0
    ) -> tuple[Float[Array, "R *b P"], Float[Array, "R *b"]]:
        """Return nodes and weights for the expectation over y given f; `turn` is the number of the draw of f."""

    def expected_log_prob(
        self,
        mean: Float[Array, "B K"],
        covariance: Float[Array, "B K K"],
        y: Float[Array, "B P"],
        normals: Float[Array, "B R"],
    ) -> Float[Array, " B"]:
        """Return E log p(y | f) for f ~ N(mean, covariance): Gauss-Hermite for one function, draws for several."""
        num_functions = mean.shape[1]
        if num_functions == 1:
            nodes, weights = np.polynomial.hermite_e.hermegauss(NUM_EXPECTATION_NODES)
            spread = jnp.sqrt(jnp.maximum(covariance[..., 0], jnp.finfo(mean.dtype).tiny * 1e6))
            f = mean + spread * nodes.astype(mean.dtype)[:, None, None]
            each = self.log_prob(f, jnp.broadcast_to(y, (len(nodes), *y.shape)))
            return (weights / weights.sum()).astype(mean.dtype) @ each
        own = normals.reshape(len(mean), NUM_EXPECTATION_DRAWS, num_functions)
        f = mean[:, None] + jnp.einsum("bkl,bjl->bjk", small_cholesky(covariance), own)
        wide = jnp.broadcast_to(y[:, None], (len(mean), NUM_EXPECTATION_DRAWS, y.shape[1]))
        return jnp.mean(self.log_prob(f, wide), axis=1)

    def num_expectation_normals(self, num_functions: int) -> int:
        """Return how many normals `expected_log_prob` needs for every row."""
        return 0 if num_functions == 1 else NUM_EXPECTATION_DRAWS * num_functions

    def functions_at(self, y: np.ndarray, num_functions: int) -> np.ndarray:
        """Return approximate values of the functions for observed y, [N, K], as a start for pseudo-observations."""
        return np.zeros((len(y), num_functions))

    def num_functions(self, num_outputs: int) -> int:
        """Return how many functions of the network are needed for so many outputs."""
        return num_outputs

    @property
    def has_like_functions(self) -> bool:
        """Whether all functions have the same meaning, as those of classes do, so that a row informs them equally."""
        return False

    @property
    def is_gaussian(self) -> bool:
        """Whether y given f is Gaussian, independently for every output."""
        return False

    def log_prior(self) -> Float[Array, ""]:
        """Return the log prior density of the learned leaves, for samplers; 0 if there are none."""
        return jnp.zeros(())

    def release_times(self) -> "Likelihood":
        """Return a tree like the likelihood: the fraction of training for which each leaf is held; inf if fixed."""
        return self


class OutputLikelihood(Likelihood):
    """A likelihood with one distribution function and, in general, one function of the network per output."""

    def num_outputs(self, f: Float[Array, "*b K"]) -> int:
        """Return how many outputs these functions describe."""
        return f.shape[-1]

    @abc.abstractmethod
    def cdf(self, f: Float[Array, "*b K"], y: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return P(Y <= y | f) for each output."""

    @abc.abstractmethod
    def from_uniform(self, f: Float[Array, "*b K"], u: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return the quantile of Y given f at u."""

    def attained(self, y: Float[Array, "*b K"]) -> Float[Array, "*b K"]:
        """Return the possible value of Y at the result of an inversion: y itself if the distribution is continuous."""
        return y

    def quick_quantile(self, f: Float[Array, "*b K"], u: Float[Array, "*c K"]) -> Float[Array, "*d K"]:
        """Return the quantile of Y given f at u; if that is expensive, a value within a fraction of the spread of Y."""
        return self.from_uniform(f, u)

    def mixture_crps(self, f: Float[Array, "S B K"], y: Float[Array, "B K"]) -> Float[Array, "B K"]:
        """Return E|Y - y| - E|Y - Y'| / 2 for the mixture over draws; the leaves must have an axis of draws, too.

        The expectations are means over quantiles of every draw at evenly spaced probabilities, which are shifted from
        draw to draw. With sorted values v_1 <= ... <= v_n, E|Y - Y'| / 2 = sum_i (2i - n - 1) v_i / n^2.
        """
        num_draws, num_rows, num_outputs = f.shape
        u = jnp.asarray(_probabilities(num_draws), f.dtype)[:, :, None, None]
        each = jax.tree.map(lambda leaf: leaf[:, None], self)  # [S, 1, 1, ...]: draws, values, rows
        values = each.quick_quantile(f[:, None], jnp.broadcast_to(u, (*u.shape[:3], num_outputs)))
        gaps = jnp.sort(values.reshape(-1, num_rows, num_outputs) - y, axis=0)
        num = gaps.shape[0]
        ranks = jnp.arange(1 - num, num, 2, dtype=f.dtype)[:, None, None]  # 2i - n - 1
        return jnp.mean(jnp.abs(gaps), 0) - jnp.sum(ranks * gaps, 0) / num**2

    def nodes(
        self, f: Float[Array, "*b K"], turn: Leaf | float = 0.0
    ) -> tuple[Float[Array, "R *b P"], Float[Array, "R *b"]]:
        """Return quantiles at evenly spaced probabilities, shifted modulo the unit cube, with equal weights."""
        num_outputs = f.shape[-1]
        shift = turn * np.sqrt([_prime(num_outputs - 1 + k) for k in range(num_outputs)])
        u = jnp.clip((jnp.asarray(_spread(num_outputs), f.dtype) + shift) % 1, 1e-9, 1 - 1e-9)
        u = u.reshape(NUM_NODES, *[1] * (f.ndim - 1), num_outputs)
        y = self.quick_quantile(f[None], u)
        return y, jnp.full(y.shape[:-1], 1 / NUM_NODES, f.dtype)


def _spread(num_outputs: int) -> np.ndarray:
    """Return evenly spaced points of the unit cube: midpoints in one dimension, a Kronecker lattice in more."""
    steps = np.arange(NUM_NODES)
    midpoints = (steps + 0.5) / NUM_NODES
    ratios = np.sqrt([_prime(k) for k in range(num_outputs - 1)]) % 1
    return np.column_stack([midpoints, *[(0.5 + steps * r) % 1 for r in ratios]])


def _probabilities(num_draws: int) -> np.ndarray:
    """Return evenly spaced probabilities for every draw, [S, R]; each draw is shifted by a different part of a step."""
    num = max(NUM_VALUES_A_DRAW, -(-NUM_VALUES // num_draws))
    shift = (0.5 + GOLDEN * np.arange(num_draws)) % 1
    return (np.arange(num) + shift[:, None]) / num


def _prime(k: int) -> int:
    found, number = -1, 1
    while found < k:
        number += 1
        found += all(number % d for d in range(2, int(number**0.5) + 1))
    return number
