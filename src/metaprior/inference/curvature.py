"""The curvature of a model's negative log likelihood at point weights: generalised Gauss-Newton, whole or by layers.

H = sum_n J_n' Lambda_n J_n, J_n the derivative of the network's outputs at row n by its weights, Lambda_n the expected
second derivative of -log p(y | f_n).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.compilation import compiled
from metaprior.likelihoods import Likelihood
from metaprior.networks import Layer, Network
from metaprior.types import Leaf
from metaprior.weights.point import product

Weights = tuple[Leaf, ...]


def expected_curvature(likelihood: Likelihood, f: Float[Array, " K"]) -> Float[Array, "K K"]:
    """Return Lambda = -E[d^2 log p(y | f) / df^2] over y given f, by the likelihood's nodes."""
    y, weight = likelihood.nodes(f)
    hessian: Callable[..., Array] = jax.hessian(lambda at, target: likelihood.log_prob(at, target))
    return -jnp.sum(weight[:, None, None] * jax.vmap(hessian, in_axes=(None, 0))(f, y), axis=0)


def curvature_root(likelihood: Likelihood, f: Float[Array, " K"]) -> Float[Array, "K K"]:
    """Return R with R R' = Lambda."""
    values, vectors = jnp.linalg.eigh(expected_curvature(likelihood, f))
    return vectors * jnp.sqrt(jnp.maximum(values, 0))


@compiled
def dense_gauss_newton(
    network: Network,
    likelihood: Likelihood,
    values: Weights,
    x: Float[Array, "B D"],
    num_fixed: int,
    weight: Float[Array, " B"] | None = None,
) -> Float[Array, "W W"]:
    """Return sum_n w_n J_n' Lambda_n J_n over the layers from `num_fixed` on, w_n = 1 without weights. Cost B K W^2."""
    fixed, free = values[:num_fixed], values[num_fixed:]

    def outputs(ws: Weights, row: Array) -> Array:
        return network([product(w) for w in (*fixed, *ws)], row[None])[0]

    def scaled_jacobian(row: Array) -> Array:
        jacobian = jax.jacrev(outputs)(free, row)
        flat = jnp.concatenate([j.reshape(j.shape[0], -1) for j in jacobian], axis=1)
        return curvature_root(likelihood, outputs(free, row)).T @ flat

    jacobians = jax.vmap(scaled_jacobian)(x)
    if weight is not None:
        jacobians = jacobians * jnp.sqrt(weight)[:, None, None]
    rows = jacobians.reshape(-1, sum(int(np.prod(w.shape)) for w in free))
    return rows.T @ rows


@compiled
def kronecker_factors(
    network: Network,
    likelihood: Likelihood,
    values: Weights,
    x: Float[Array, "B D"],
    weight: Float[Array, " B"] | None = None,
) -> tuple[list[Array], list[Array]]:
    """Return sum_n w_n a a' and sum_n w_n g g' of every layer: its inputs, and the root curvature at its outputs."""

    def of_row(row: Array) -> tuple[list[Array], list[Array]]:
        zeros = [jnp.zeros(w.shape[1], x.dtype) for w in values]
        seen: list[Array] = []

        def moved(shifts: list[Array], keep: bool = False) -> Array:
            def layer(w: Leaf, shift: Array) -> Layer:
                def push(h: Array) -> Array:
                    if keep:
                        seen.append(h[0])
                    return h @ w + shift

                return push

            return network([layer(w, s) for w, s in zip(values, shifts, strict=True)], row[None])[0]

        f = moved(zeros, keep=True)
        root = curvature_root(likelihood, f)
        gradients = [root.T @ j for j in jax.jacrev(moved)(zeros)]
        return [jnp.outer(a, a) for a in seen], [g.T @ g for g in gradients]

    inputs, outputs = jax.vmap(of_row)(x)
    each = jnp.ones(x.shape[0], x.dtype) if weight is None else weight
    return [jnp.tensordot(each, a, 1) for a in inputs], [jnp.tensordot(each, g, 1) for g in outputs]
