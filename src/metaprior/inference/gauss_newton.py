"""Gauss-Newton steps on q(v), all else held: what a new mapping of known units needs is solved, not searched for.

The bound's part that v moves is E_q[sum_n log p(y_n | f_n(v, z))] - |v|^2 / 2. With f linear in v around its mean,
f = f_0 + J (v - m), and log p quadratic in f, its optimum is Gaussian:

H = I + E_z[sum_n J_n' Lambda_n J_n],   m <- m + (H + damping I)^-1 (E_z[sum_n J_n' d log p / df] - m),   T T' = H^-1,

the last for every mapping with its own block of H, for q(v) has no covariance between mappings.
The expectation is over a few draws of z, the same in every step. A step that does not raise the objective is not taken
and the next is damped more (Levenberg, Marquardt). Cost a step: S B passes through the network for each of the M
directions, and M^3.
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.compilation import as_float64, compiled, in_float64
from metaprior.inference.curvature import expected_curvature
from metaprior.leaves import Leaf
from metaprior.mapping import Mapping
from metaprior.model import Model
from metaprior.noise import Noise
from metaprior.weights.metagp import MetaGP

#: Draws of the unit latents.
NUM_DRAWS = 4
#: Rows that are looked at at most: they place M values.
MOST_ROWS = 1000
#: The damping at the start; it falls by the first factor with a step that is taken, rises by the second with another.
DAMPING, EASED, TIGHTENED = 1.0, 0.1, 10.0


def gauss_newton(model: Model, x: np.ndarray, y: np.ndarray, num_steps: int, seed: int) -> Model:
    """Return the model, of a MetaGP, with q(v) of all mappings after so many steps; nothing else has moved.

    Where its numbers are not finite the model is as it was.
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(x))[:MOST_ROWS]
    units = rng.standard_normal((NUM_DRAWS, model.weights.sizes().units))
    data = (np.asarray(x[rows], float), np.asarray(y[rows], float), units, np.asarray(len(x) / len(rows)))
    with in_float64():
        found = [np.asarray(part) for part in _steps(as_float64(model), *data, np.int32(num_steps))]
    if not all(np.all(np.isfinite(part)) for part in found):
        return model
    means, precision, _ = found
    mappings = _with_posterior(model.weights.mappings, means, precision)  # type: ignore[attr-defined]
    return eqx.tree_at(lambda m: m.weights.mappings, model, mappings)


def _with_posterior(mappings: Sequence[Mapping], means: np.ndarray, precision: np.ndarray) -> tuple[Mapping, ...]:
    """Return the mappings, each with its own part of q(v)."""
    found, first = [], 0
    for mapping in mappings:
        own = slice(first, first + mapping.num_inducing)
        covariance = np.linalg.inv(precision[own, own])
        factor, dtype = np.linalg.cholesky(0.5 * (covariance + covariance.T)), np.asarray(mapping.mean).dtype
        values = (means[own], np.log(np.diag(factor)), np.tril(factor, -1))
        fields = [value.astype(dtype) for value in values]
        found.append(eqx.tree_at(lambda m: (m.mean, m.log_diagonal, m.below_diagonal), mapping, fields))
        first += mapping.num_inducing
    return tuple(found)


@compiled
def _steps(
    model: Model, x: Float[Leaf, "B D"], y: Float[Leaf, "B P"], units: Leaf, weight: Leaf, num_steps: Leaf
) -> tuple[Array, Array, Array]:
    """Return m of all mappings, end to end, H there, and the objective."""
    weights: MetaGP = model.weights  # type: ignore[assignment]
    sizes, prepared = weights.sizes(), weights.prepared()
    start = jnp.concatenate([jnp.asarray(mapping.mean) for mapping in weights.mappings])
    ends = np.cumsum([mapping.num_inducing for mapping in weights.mappings])[:-1]

    def functions(v: Array) -> Float[Array, "S B K"]:
        means = jnp.split(v, ends.tolist())
        moved = eqx.tree_at(lambda p: [m.mean for m in p.model.mappings], prepared, means)

        def one(own: Array) -> Array:
            rows = jnp.zeros((len(x), sizes.per_row))
            noise = Noise(own, jnp.zeros(sizes.weights), jnp.zeros(sizes.spectral), rows)
            return moved.draw(noise).outputs(model.network, x, noise.rows)

        return jax.vmap(one)(units)

    def log_likelihood(f: Array) -> Array:
        return weight * jnp.sum(model.likelihood.log_prob(f, jnp.broadcast_to(y, (len(f), *y.shape)))) / len(f)

    def objective(v: Array) -> Array:
        return log_likelihood(functions(v)) - 0.5 * jnp.sum(v**2)

    def curvature(v: Array) -> tuple[Array, Array]:
        """Return the gradient, and H."""
        f, jacobian = functions(v), jax.jacfwd(functions)(v)
        each = jax.vmap(jax.vmap(lambda row: expected_curvature(model.likelihood, row)))(f)
        gauss = jnp.einsum("sbkm,sbkl,sbln->mn", jacobian, each, jacobian) * weight / len(f)
        gradient = jnp.einsum("sbkm,sbk->m", jacobian, jax.grad(log_likelihood)(f)) - v
        return gradient, gauss + jnp.eye(len(v))

    def step(_: int, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        v, value, damping = state
        gradient, hessian = curvature(v)
        proposed = v + jnp.linalg.solve(hessian + damping * jnp.eye(len(v)), gradient)
        found = objective(proposed)
        better = found > value
        moved = jnp.where(better, proposed, v)
        return moved, jnp.where(better, found, value), damping * jnp.where(better, EASED, TIGHTENED)

    last, value, _ = jax.lax.fori_loop(0, num_steps, step, (start, objective(start), jnp.asarray(DAMPING)))
    return last, curvature(last)[1], value
