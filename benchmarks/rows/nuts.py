"""Effective samples per second of NUTS on a small network: our sampler against a model in NumPyro's own style."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.diagnostics import effective_sample_size

from benchmarks.measure import Row
from metaprior.baselines import HMCRegressor

HIDDEN, WARMUP, SAMPLES, CHAINS = 20, 300, 300, 2


def _data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (100, 1))
    y = np.sin(2 * np.pi * 0.6 * x[:, 0]) + 0.1 * rng.standard_normal(100)
    return (x - x.mean()) / x.std(), (y - y.mean()) / y.std()


def _bnn(x: jax.Array, y: jax.Array) -> None:
    """The same model in NumPyro's primitives: standard normal weights, tanh, Gaussian noise."""
    w1 = numpyro.sample("w1", dist.Normal(jnp.zeros((1, HIDDEN)), 1.0))
    b1 = numpyro.sample("b1", dist.Normal(jnp.zeros(HIDDEN), 1.0))
    w2 = numpyro.sample("w2", dist.Normal(jnp.zeros((HIDDEN, 1)), 1.0))
    b2 = numpyro.sample("b2", dist.Normal(jnp.zeros(1), 1.0))
    f = numpyro.deterministic("f", (jnp.tanh(x @ w1 + b1) @ w2 + b2)[:, 0])
    log_noise = numpyro.sample("log_noise", dist.Normal(jnp.log(0.1), 1.0))
    numpyro.sample("y", dist.Normal(f, jnp.exp(log_noise)), obs=y)


def _numpyro(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, float]:
    """Return the least effective sample size of f at the data, and the seconds including compilation."""
    begun = time.perf_counter()
    with jax.enable_x64(True):
        mcmc = numpyro.infer.MCMC(
            numpyro.infer.NUTS(_bnn),
            num_warmup=WARMUP,
            num_samples=SAMPLES,
            num_chains=CHAINS,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(seed), jnp.asarray(x), jnp.asarray(y))
        f = np.asarray(mcmc.get_samples(group_by_chain=True)["f"])
    return float(np.min(effective_sample_size(f[:, :, ::2]))), time.perf_counter() - begun


def _ours(x: np.ndarray, y: np.ndarray, seed: int) -> tuple[float, float]:
    begun = time.perf_counter()
    model = HMCRegressor((HIDDEN,), n_warmup=WARMUP, n_samples=SAMPLES, n_chains=CHAINS, random_state=seed).fit(x, y)
    return model.ess_, time.perf_counter() - begun


def measure() -> Row:
    """Return (our effective samples per second) / (NumPyro's): medians over seeds, with whole calls timed."""
    x, y = _data()
    _ours(x, y, 100), _numpyro(x, y, 100)  # compile; ours keeps the program, NumPyro does not
    rates: dict[str, list[float]] = {"ours": [], "NumPyro": []}
    for seed in range(3):
        for name, sample in (("ours", _ours), ("NumPyro", _numpyro)):
            worth, spent = sample(x, y, seed)
            rates[name].append(worth / spent)
    medians = {name: float(np.median(values)) for name, values in rates.items()}
    return Row(
        "effective samples per second, BNN 1-20-1: our NUTS / NumPyro's own style",
        medians["ours"] / medians["NumPyro"],
        ">= 1",
        {
            "effective samples per second": medians,
            "all": rates,
            "timed": "whole calls; NumPyro compiles in every call, metaprior once for all data of one shape",
        },
    )
