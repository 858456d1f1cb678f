"""The objective: ELBO = sum_n E_q[log p(y_n | f_n)] - KL[q(z)||p(z)] - KL[q(v)||N(0, I)] - KL[q(V)||p(V)].

In nats, larger is better, its terms one by one. A batch's rows carry weights that sum to the number of data, so the
first term is unbiased for the whole; padded rows weigh nothing.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from metaprior.leaves import Leaf
from metaprior.model import Model
from metaprior.noise import Noise


class Batch(eqx.Module):
    """Rows of data with what each counts for."""

    x: Float[Leaf, "B D"]
    y: Float[Leaf, "B P"]
    weight: Float[Leaf, " B"]


def elbo_terms(model: Model, noise: Noise, batch: Batch) -> tuple[dict[str, Float[Array, ""]], Float[Array, ""]]:
    """Return the terms (`log_likelihood`, then the KL's parts) and the jitter the factorisations took."""
    prepared = model.weights.prepared()
    f = model.functions(prepared, noise, batch.x)
    # rows that weigh nothing may hold any y: keep it out of sums and derivatives (0 times NaN is NaN)
    y = jnp.where(batch.weight[:, None] > 0, batch.y, 0)
    log_prob = model.likelihood.log_prob(f, jnp.broadcast_to(y, (f.shape[0], *y.shape)))
    expected = jnp.mean(log_prob, axis=0) * batch.weight
    return {"log_likelihood": jnp.sum(expected), **model.weights.kl()}, prepared.jitter


def elbo(terms: dict[str, Float[Array, ""]], kl_weight: Float[Array, ""] | float = 1.0) -> Float[Array, ""]:
    """Return log likelihood - kl_weight * (sum of the KL's parts)."""
    kl = sum((value for name, value in terms.items() if name.startswith("kl_")), jnp.zeros(()))
    return terms["log_likelihood"] - kl_weight * kl
