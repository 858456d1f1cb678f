"""The objective: ELBO = sum_n E_q[log p(y_n | f_n)] - KL[q(z)||p(z)] - KL[q(v)||N(0, I)] - KL[q(V)||p(V)].

With an integrated output layer the first term is E_q(below)[log p(y | below)], or a bound of it (`output_layer`).

In nats, larger is better, its terms one by one. A batch's rows carry weights that sum to the number of data, so the
first term is unbiased for the whole; padded rows weigh nothing.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.model import Model
from metaprior.output_layer import FunctionGP
from metaprior.output_layer.base import Batch
from metaprior.random import StandardNormals

__all__ = ["Batch", "elbo", "elbo_terms"]


def elbo_terms(
    model: Model, normals: StandardNormals, batch: Batch
) -> tuple[dict[str, Float[Array, ""]], Float[Array, ""]]:
    """Return the terms (`log_likelihood`, then the KL's parts) and the jitter the factorisations took."""
    if model.output is not None:
        return _integrated_terms(model, normals, batch)
    prepared = model.weights.prepared()
    f = model.functions(prepared, normals, jnp.asarray(batch.x))
    # rows that weigh nothing may hold any y: keep it out of sums and derivatives (0 times NaN is NaN)
    y = jnp.where(batch.weight[:, None] > 0, batch.y, 0)
    log_prob = model.likelihood.log_prob(f, jnp.broadcast_to(y, (f.shape[0], *y.shape)))
    expected = jnp.mean(log_prob, axis=0) * batch.weight
    return {"log_likelihood": jnp.sum(expected), **model.weights.kl()}, prepared.jitter


def _integrated_terms(
    model: Model, normals: StandardNormals, batch: Batch
) -> tuple[dict[str, Float[Array, ""]], Float[Array, ""]]:
    """Return the same where the output layer is integrated: the mean over draws of what is below it."""

    def one(normals: StandardNormals) -> tuple[Array, dict[str, Array], Array]:
        drawn, own = model.with_hypers(normals)
        assert drawn.output is not None
        prepared = drawn.weights.prepared()
        draw = prepared.draw(own)
        bound, kl = drawn.output.bound(FunctionGP.of(draw, drawn.network), drawn.likelihood, batch, own.rows)
        return bound, {**draw.kl(), **kl}, jnp.maximum(prepared.jitter, draw.jitter)

    if jax.tree.leaves(normals)[0].shape[0] == 1:
        # one draw needs no batch: a loop of one matrix costs copies of it
        bounds, kls, jitters = one(jax.tree.map(lambda leaf: leaf[0], normals))
    else:
        bounds, kls, jitters = jax.vmap(one)(normals)
    terms = {"log_likelihood": jnp.mean(bounds), **model.kl()}
    for name, values in kls.items():
        terms[name] = terms.get(name, 0) + jnp.mean(values)
    return terms, jnp.max(jitters)


def elbo(terms: dict[str, Float[Array, ""]], kl_weight: Float[Array, ""] | float = 1.0) -> Float[Array, ""]:
    """Return log likelihood - kl_weight * (sum of the KL's parts)."""
    kl = sum((value for name, value in terms.items() if name.startswith("kl_")), jnp.zeros(()))
    return terms["log_likelihood"] - kl_weight * kl
