"""Bayesian optimisation as BoTorch does it: an exact GP (`SingleTaskGP`) and the expected improvement (`qLogEI`).

The settings are those of BoTorch's tutorials: inputs in the unit cube, standardised values, the library's own priors on
lengthscales, and a search from the best of many points. The first points are those of our optimiser, so that all
methods start alike. PyTorch and BoTorch are imported here only.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from metaprior.decisions import Box
from metaprior.extras import imported

#: Where the search for the largest expected improvement starts: this many points, the best of so many.
NUM_RESTARTS, RAW_SAMPLES = 10, 512
#: Values that the expected improvement is averaged over.
NUM_SAMPLES = 256
PART, EXTRA = "the comparison with BoTorch", "botorch"


def is_installed() -> bool:
    """Return whether BoTorch can be imported."""
    return find_spec("botorch") is not None and find_spec("torch") is not None


def search(function: Callable[[np.ndarray], float], bounds: Any, num_evaluations: int, seed: int) -> np.ndarray:
    """Minimise a function and return its values in the order of evaluation."""
    torch = imported("torch", part=PART, extra=EXTRA)
    torch.set_num_threads(1)
    box = Box(bounds)
    units = box.to_unit(box.spread(min(2 * box.n_dimensions + 2, num_evaluations), seed))
    values = [function(x) for x in box.from_unit(units)]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        while len(values) < num_evaluations:
            units = np.vstack([units, _next(units, np.array(values))])
            values.append(function(box.from_unit(units[-1:])[0]))
    return np.array(values)


def _next(units: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the point of the unit cube with the largest expected improvement; BoTorch maximises, so values turn."""
    torch, fit = imported("torch", part=PART, extra=EXTRA), imported("botorch.fit", part=PART, extra=EXTRA)
    models = imported("botorch.models", part=PART, extra=EXTRA)
    optim = imported("botorch.optim", part=PART, extra=EXTRA)
    logei = imported("botorch.acquisition.logei", part=PART, extra=EXTRA)
    likelihoods = imported("gpytorch.mlls", part=PART, extra=EXTRA)
    sampling = imported("botorch.sampling", part=PART, extra=EXTRA)
    X, y = torch.as_tensor(units), -torch.as_tensor(values)[:, None]
    model = models.SingleTaskGP(X, y)  # standardises the values itself
    fit.fit_gpytorch_mll(likelihoods.ExactMarginalLogLikelihood(model.likelihood, model))
    sampler = sampling.SobolQMCNormalSampler(torch.Size([NUM_SAMPLES]))
    gain = logei.qLogExpectedImprovement(model, best_f=y.max(), sampler=sampler)
    cube = torch.stack([torch.zeros(X.shape[1]), torch.ones(X.shape[1])]).to(X)
    found, _ = optim.optimize_acqf(gain, cube, q=1, num_restarts=NUM_RESTARTS, raw_samples=RAW_SAMPLES)
    return np.clip(found.detach().numpy(), 0, 1)
