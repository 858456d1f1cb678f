"""The interface of a regime: the bound of the data and the posterior of f, given a draw below the output layer.

Given the unit latents and the layers below, the network's outputs are a Gaussian process (`weight_gp.output`). The
objective is then E_q(below)[log p(y | below)] minus the KL of what is drawn. It is never looser than a bound that draws
the output weights from a posterior of their own. Each regime in this folder computes the inner term in one way, with
the same parts in the same order: the bound of a batch, then the posterior given the draw.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.likelihoods import Gaussian, Likelihood
from metaprior.networks import Network
from metaprior.types import Leaf
from metaprior.weight_gp import OutputPrior, OutputRows, PriorFunction
from metaprior.weights import WeightDraw

#: The number of random features of the input kernel in a drawn function.
NUM_FEATURES = 256


class FunctionGP(eqx.Module):
    """The Gaussian process of the network's outputs given one draw of everything below the output layer."""

    draw: WeightDraw
    network: Network
    prior: OutputPrior

    @classmethod
    def of(cls, draw: WeightDraw, network: Network) -> "FunctionGP":
        """Return the process for a draw of the weights below the output layer."""
        return cls(draw, network, draw.output_prior())

    def rows(self, x: Float[Leaf, "B D"]) -> OutputRows:
        """Return the inputs mapped through the layers below the output layer."""
        x = jnp.asarray(x)
        return OutputRows(self.activations(x) * self.prior.scale, self.draw.aux_inputs(x))

    def activations(self, x: Float[Leaf, "B D"]) -> Float[Array, "B I"]:
        """Return the activations below the output layer, that of the bias unit last."""
        x = jnp.asarray(x)
        none = jnp.zeros((x.shape[0], 0), x.dtype)
        return self.network([*self.draw.at(x, none), lambda h: h], x)


class Batch(eqx.Module):
    """Rows of data with a weight for each; padding has weight 0."""

    x: Float[Leaf, "*s B D"]
    y: Float[Leaf, "*s B P"]
    weight: Float[Leaf, "*s B"]


class ConditionedGP(eqx.Module):
    """The posterior of the functions given one draw of all that is below."""

    gp: FunctionGP

    def moments(self, x: Float[Array, "B D"]) -> tuple[Float[Array, "B K"], Float[Array, "B K K"]]:
        """Return the mean and the covariance of the outputs at each row."""
        return self.moments_of(self.gp.rows(x))

    def moments_of(self, rows: OutputRows) -> tuple[Float[Array, "B K"], Float[Array, "B K K"]]:
        """Return the same for rows that have already been mapped up to the output layer."""
        return self.moments_of_part(self.gp.prior, rows)

    @abc.abstractmethod
    def moments_of_part(self, part: OutputPrior, rows: OutputRows) -> tuple[Float[Array, "B K"], Float[Array, "B K K"]]:
        """Return the moments of one of the prior's `additive_parts`, given what is known of their sum."""

    def covariance_of(self, a: OutputRows, b: OutputRows) -> Float[Array, "KA KB"]:
        """Return the covariance of the outputs at two sets of rows, ordered by output."""
        return self.covariance_of_part(self.gp.prior, a, b)

    @abc.abstractmethod
    def covariance_of_part(self, part: OutputPrior, a: OutputRows, b: OutputRows) -> Float[Array, "KA KB"]:
        """Return the same for one of the prior's `additive_parts`."""

    @abc.abstractmethod
    def num_normals(self) -> int:
        """Return how many normals a drawn function takes."""

    @abc.abstractmethod
    def function(self, normals: Float[Array, " n"]) -> Callable[[Float[Array, "B D"]], Float[Array, "B K"]]:
        """Return a function of the posterior."""


class ConditionedRows(ConditionedGP):
    """The posterior through what rows `at` know, spread by the covariance."""

    at: OutputRows

    @property
    def num_values(self) -> int:
        """The number of values of f at the rows `at`: rows times outputs."""
        return self.gp.prior.num_outputs * self.at.phi.shape[0]

    @property
    def _num_dims(self) -> int:
        return self.at.eps.shape[1]

    def num_normals(self) -> int:
        """Return how many normals a drawn function needs."""
        return self.gp.prior.num_normals(NUM_FEATURES, self._num_dims) + self.num_values

    def function(self, normals: Float[Array, " n"]) -> "DrawnFunction":
        """Return a function drawn from the posterior, by Matheron's rule: a draw from the prior, plus a correction."""
        size = self.num_values
        drawn = self.gp.prior.function(normals[size:], NUM_FEATURES, self._num_dims)
        own = normals[:size].reshape(self.gp.prior.num_outputs, -1)
        return DrawnFunction(self.gp, self.at, drawn, self.update(drawn(self.at), own))

    @abc.abstractmethod
    def update(self, prior_values: Float[Array, "K R"], normals: Float[Array, "K R"]) -> Float[Array, "K R"]:
        """Return the coefficients that turn a prior draw with these values into a posterior draw."""


class DrawnFunction(eqx.Module):
    """A function drawn from the posterior, given one draw of everything below the output layer."""

    gp: FunctionGP
    at: OutputRows
    prior_function: PriorFunction
    coefficients: Float[Array, "K R"]

    def __call__(self, x: Float[Array, "B D"]) -> Float[Array, "B K"]:
        """Return the values at inputs x. Cost B K R, plus the cost of a function drawn from the prior."""
        rows, prior = self.gp.rows(x), self.gp.prior
        moved = prior.spread(self.coefficients, self.at, prior, rows)
        return (prior.mean(rows) + self.prior_function(rows) + moved).T


class JointRows(ConditionedRows):
    """All outputs at all rows `at` in one matrix: E f(x) = m(x) + k(x)' alpha, cov = K - k(x)' E' E k(x').

    E is `explained`.
    """

    alpha: Float[Array, "K R"]
    explained: Float[Array, "J KR"]

    def moments_of_part(self, part: OutputPrior, rows: OutputRows) -> tuple[Float[Array, "B K"], Float[Array, "B K K"]]:
        """Return the mean and the covariance of the outputs at each row. Cost B R (I + K J)."""
        learned = self._spread(jnp.concatenate([self.explained, self.alpha.reshape(1, -1)]), part, rows)
        mean = part.mean(rows) + learned[-1]
        return mean.T, part.own_covariance(rows) - _squares(learned[:-1])

    def covariance_of_part(self, part: OutputPrior, a: OutputRows, b: OutputRows) -> Float[Array, "KA KB"]:
        """Return K(a, b) - k(a)' E' E k(b). Cost K (A + B) R J + K^2 A B J."""
        on_a, on_b = (self._spread(self.explained, part, rows).reshape(len(self.explained), -1) for rows in (a, b))
        return part.covariance(a, b) - on_a.T @ on_b

    def _spread(self, coefficients: Float[Array, "J KR"], part: OutputPrior, rows: OutputRows) -> Float[Array, "J K B"]:
        by_row = coefficients.reshape(len(coefficients), part.num_outputs, -1)
        return self.gp.prior.spread(by_row, self.at, part, rows)


class ObservedRows(JointRows):
    """The posterior after observing f with Gaussian noise, at rows of the data or as pseudo-observations."""

    observed: Float[Array, "K R"]
    noise: Float[Array, "K R"]

    @classmethod
    def of(
        cls, gp: FunctionGP, at: OutputRows, explained: Float[Array, "KR KR"], observed: Array, noise: Array
    ) -> "ObservedRows":
        """Return the posterior for a given E = (K + noise^2)^-1/2 and the observed values minus the prior mean."""
        shape = (gp.prior.num_outputs, -1)
        alpha = explained.T @ (explained @ observed)
        return cls(gp, at, alpha.reshape(shape), explained, observed.reshape(shape), noise.reshape(shape))

    def update(self, prior_values: Float[Array, "K R"], normals: Float[Array, "K R"]) -> Float[Array, "K R"]:
        """Return (K + noise^2)^-1 (observed - f - noise normals)."""
        gap = self.observed - prior_values - self.noise * normals
        return (self.explained.T @ (self.explained @ gap.ravel())).reshape(gap.shape)

    def kl(self) -> Float[Array, ""]:
        """Return KL[q(f at the rows) || p] = (tr B^-1 - R + log |B| + alpha' K alpha) / 2, B = I + K / noise^2."""
        gram = self.gp.prior.covariance(self.at, self.at)
        # L_B^-1 = explained noise, and tr B^-1 = |L_B^-1|^2
        return kl_of_observing(self.explained * self.noise.ravel(), gram, self.alpha.ravel())


def kl_of_observing(inverse_root: Float[Array, "R R"], gram: Float[Array, "R R"], alpha: Float[Array, " R"]) -> Array:
    """Return (tr B^-1 - R + log |B| + alpha' K alpha) / 2 for the inverse root of B."""
    spread = jnp.sum(inverse_root**2) - len(gram)
    return 0.5 * (spread + alpha @ gram @ alpha) - jnp.sum(jnp.log(jnp.diagonal(inverse_root)))


class OutputLayer(eqx.Module):
    """A regime: how the data condition the functions of the integrated output layer."""

    #: Whether every training step needs all rows.
    takes_all_rows: bool = eqx.field(static=True, init=False, default=True)

    @abc.abstractmethod
    def bound(
        self, gp: FunctionGP, likelihood: Likelihood, batch: Batch, normals: Float[Array, "B R"]
    ) -> tuple[Float[Array, ""], dict[str, Float[Array, ""]]]:
        """Return the log likelihood of a batch given a draw (or a bound), and the KL of variables with their own q."""

    @abc.abstractmethod
    def conditioned(self, gp: FunctionGP, likelihood: Likelihood) -> ConditionedGP:
        """Return the posterior of the functions given a draw."""

    @abc.abstractmethod
    def with_rows(self, rows: Batch) -> "OutputLayer":
        """Return the regime with the rows stored, if its posterior needs them."""

    def score(
        self, gp: FunctionGP, likelihood: Likelihood, seen: Batch, held_out: Batch, normals: Float[Array, "B R"]
    ) -> Float[Array, ""]:
        """Return the expected log likelihood of held-out rows, given a draw and the rows `seen`."""
        posterior = self.with_rows(seen).conditioned(gp, likelihood)
        # Rows with weight 0 may contain any y.
        y = jnp.where(held_out.weight[:, None] > 0, held_out.y, 0)
        expected = likelihood.expected_log_prob(*posterior.moments(jnp.asarray(held_out.x)), y, normals)
        return jnp.sum(expected * held_out.weight)

    def row_normals(self, likelihood: Likelihood, num_outputs: int) -> int:
        """Return how many normals the bound needs for every row."""
        return 0


def by_output(columns: Float[Array, "B K"]) -> Float[Array, " KB"]:
    """Return the values ordered by output, as in the covariance."""
    return columns.T.ravel()


def noise_of(likelihood: Likelihood) -> Float[Array, " K"]:
    """Return the standard deviation of the Gaussian noise of every output."""
    assert isinstance(likelihood, Gaussian)
    return likelihood.noise


def _squares(columns: Float[Array, "R K B"]) -> Float[Array, "B K K"]:
    """Return, for every row, the inner products of the columns of its outputs."""
    if columns.shape[1] == 1:  # a sum takes three quarters of the time of the general product
        return jnp.sum(columns**2, axis=0)[0, :, None, None]
    return jnp.einsum("rkb,rlb->bkl", columns, columns)
