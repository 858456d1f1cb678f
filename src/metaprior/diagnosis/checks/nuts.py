"""The posterior of NUTS beside the variational one, for small networks (the extra `hmc`).

The sampler runs on the fitted model itself: on the standard normals that the variational posterior is a map of, with
the output layer integrated exactly. So both have the same prior, the same hyper-parameters (drawn, if they are
uncertain, and otherwise at their fitted values), and the same data: what differs is the approximation alone.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from metaprior.compilation import as_float64, in_float64
from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.posterior import FunctionMoments, Target, draws_of, function_moments, target_of
from metaprior.diagnosis.subject import Subject
from metaprior.inference.importance import log_density_of_normals, num_numbers
from metaprior.inference.nuts import effective_sample_size, require_numpyro, split_rhat
from metaprior.random import StandardNormals

NAME = "nuts"
#: The most numbers that are sampled, and the most targets: every step of a chain factors a matrix of their size.
MOST_NUMBERS, MOST_TARGETS = 500, 300
#: Chains, their lengths, and the states of all chains that predictions mix; as many draws of q.
NUM_CHAINS, NUM_WARMUP, NUM_SAMPLES, NUM_MIXED = 4, 300, 300, 200
#: Rows that the functions are compared at.
MOST_ROWS = 200
#: The ratio of standard deviations, the distance of means in standard deviations, and R-hat, beyond which it is told.
NARROW, WIDE, FAR, POOR_RHAT = 0.8, 1.25, 0.5, 1.05


class Chains(NamedTuple):
    """States [chains, samples, numbers] and how many transitions diverged."""

    states: np.ndarray
    num_divergences: int


def compared_with_nuts(subject: Subject) -> Finding | LeftOut:
    """Sample the posterior and compare the functions; raise an error if the network is too large."""
    target = refuse_large(subject)
    chains = sampled(target, subject.seed)
    x = subject.x_unit[np.linspace(0, len(subject) - 1, min(MOST_ROWS, len(subject))).round().astype(int)]
    flat = chains.states.reshape(-1, chains.states.shape[-1])
    chosen = flat[np.linspace(0, len(flat) - 1, NUM_MIXED).round().astype(int)]
    theirs = _mixed(function_moments(target, _as_normals(target, chosen), x))
    ours = _mixed(function_moments(target, draws_of(target, NUM_MIXED, subject.seed), x))
    return _compared(subject, ours, theirs, _mixing(target, chains, x))


def refuse_large(subject: Subject) -> Target:
    """Return what is to be sampled; raise an error if it is too large, or no model that can be sampled."""
    require_numpyro()
    target = target_of(subject)
    if isinstance(target, str):
        raise ValueError(f"nuts: expected a model that can be sampled; {target}")
    if not target.is_exact:
        raise ValueError(
            "nuts: expected Gaussian noise and an output layer that is integrated exactly (output_layer='exact', or "
            f"'inducing_rows' with few rows); got the regime {type(target.model.output).__name__}."
        )
    count, size = num_numbers(target.model), target.batch.y.size
    if count > MOST_NUMBERS or size > MOST_TARGETS:
        raise ValueError(
            f"nuts: expected at most {MOST_NUMBERS} numbers below the output layer and {MOST_TARGETS} targets; got "
            f"{count} and {size}. Fit a smaller network (hidden_layer_sizes, latent_dim) or fewer rows, or take "
            "nuts=False."
        )
    return target


def _as_normals(target: Target, flat: Float[np.ndarray, "S n"] | Array) -> StandardNormals:
    """Return states as normals of draws."""
    sizes = target.model.sizes()
    ends = np.cumsum([sizes.latents, sizes.weights]).tolist()
    latents, weights, spectral = jnp.split(jnp.asarray(flat), ends, axis=-1)
    return StandardNormals(latents, weights, spectral, jnp.zeros((*flat.shape[:-1], target.batch.x.shape[0], 0)))


def sampled(target: Target, seed: int) -> Chains:
    """Run the chains, each from a draw of the variational posterior."""
    from numpyro.infer import MCMC, NUTS

    with in_float64():
        model, batch = as_float64(target.model), as_float64(target.batch)

        def potential(state: Array) -> Array:
            return -log_density_of_normals(model, _as_normals(target, state), batch)

        starts = np.random.default_rng(seed).standard_normal((NUM_CHAINS, num_numbers(target.model)))
        sampler = MCMC(
            NUTS(potential_fn=potential),
            num_warmup=NUM_WARMUP,
            num_samples=NUM_SAMPLES,
            num_chains=NUM_CHAINS,
            chain_method="vectorized",
            progress_bar=False,
        )
        sampler.run(jax.random.PRNGKey(seed), init_params=jnp.asarray(starts), extra_fields=("diverging",))
        states = np.asarray(sampler.get_samples(group_by_chain=True))
        return Chains(states, int(np.sum(np.asarray(sampler.get_extra_fields()["diverging"]))))


class Functions(NamedTuple):
    """The mean and the standard deviation of the functions at rows, [rows, outputs]."""

    mean: np.ndarray
    std: np.ndarray


def _mixed(moments: FunctionMoments) -> Functions:
    """Return the moments of a mixture."""
    return Functions(
        moments.mean.mean(axis=0), np.sqrt(np.maximum(moments.variance.mean(axis=0) + moments.mean.var(axis=0), 0))
    )


def _mixing(target: Target, chains: Chains, x: np.ndarray) -> dict[str, float]:
    """Return R-hat and the effective sample size of the mean function given each state, at a few rows."""
    rows = x[np.linspace(0, len(x) - 1, min(20, len(x))).round().astype(int)]
    thinned = chains.states[:, :: max(1, chains.states.shape[1] // 100)]
    flat = thinned.reshape(-1, thinned.shape[-1])
    mean = function_moments(target, _as_normals(target, flat), rows).mean.reshape(*thinned.shape[:2], -1)
    return {
        "rhat": float(np.max(split_rhat(mean))),
        "ess": float(np.min(effective_sample_size(mean))),
        "divergences": float(chains.num_divergences),
    }


def _compared(subject: Subject, ours: Functions, theirs: Functions, mixing: dict[str, float]) -> Finding:
    ratio = float(np.exp(np.mean(np.log(ours.std / theirs.std))))
    gap = float(np.sqrt(np.mean(((ours.mean - theirs.mean) / theirs.std) ** 2)))
    numbers = {"std_ratio": ratio, "mean_gap": gap, **mixing}
    told = (
        f"at the {subject.rows_name} its standard deviations are {ratio:.2f} times those of NUTS, and its means are "
        f"{gap:.2f} standard deviations off (R-hat {mixing['rhat']:.2f})"
    )
    if mixing["rhat"] > POOR_RHAT:
        sentence = f"The chains of NUTS do not agree, so the comparison is rough: {told}."
        return Finding(NAME, "note", sentence, "Compare a smaller network, or fewer rows.", numbers)
    if NARROW <= ratio <= WIDE and gap <= FAR:
        return Finding(NAME, "ok", f"The variational posterior agrees with NUTS: {told}.", "", numbers)
    kind = "narrower than" if ratio < NARROW else "wider than" if ratio > WIDE else "off"
    advice = (
        "Take uncertain_hypers=True if it is False, raise max_iter if the fit has not converged, or take the sampler "
        "itself: baselines.HMCRegressor(prior='metagp')."
    )
    return Finding(NAME, "warning", f"The variational posterior is {kind} that of NUTS: {told}.", advice, numbers)
