"""The simple regret of several surrogates on three functions whose lowest value is known.

The table takes about half an hour on two cores. For a part of it, name functions: branin, hartmann6, ripples.
"""

import sys
import time

import numpy as np

from metaprior import kernels
from metaprior.baselines import ExactGPRegressor, MFVIRegressor
from metaprior.decisions import default_surrogate, minimise
from metaprior_reproduction.problems import BRANIN, HARTMANN6, RIPPLES
from metaprior_reproduction.problems.functions import PERIOD

SEEDS = range(5)
#: The function, the number of evaluations, and the kernels to try.
PROBLEMS = {
    "branin": (BRANIN, 40, {"RBF": kernels.RBF()}),
    "hartmann6": (HARTMANN6, 60, {"RBF": kernels.RBF()}),
    "ripples": (RIPPLES, 30, {"periodic": kernels.Periodic(PERIOD, fixed=("period",)), "RBF": kernels.RBF()}),
}


def baselines(known):
    """Yield the name, the surrogate and the acquisition function of every method."""
    for name, kernel in known.items():
        yield f"MetaGP, {name}", default_surrogate(kernel), "thompson"
        yield f"exact GP, {name}", ExactGPRegressor(kernel, n_restarts=1), "thompson"
        yield f"exact GP, {name}, EI", ExactGPRegressor(kernel, n_restarts=1), "ei"
    yield "MFVI", MFVIRegressor(max_iter=1000, noise=0.02), "thompson"
    yield "random", None, "random"


def table(chosen):
    """Print the median and the quartiles of the simple regret over seeds."""
    for title in chosen:
        objective, n_observations, known = PROBLEMS[title]
        print(f"{title}, {n_observations} evaluations{'median':>14s}{'quartiles':>20s}{'seconds':>10s}")
        for name, surrogate, acquisition in baselines(known):
            started = time.perf_counter()
            runs = [
                minimise(
                    objective,
                    objective.bounds,
                    n_observations,
                    estimator=surrogate,
                    acquisition=acquisition,
                    random_state=seed,
                )
                for seed in SEEDS
            ]
            low, middle, high = np.quantile([run.best_y - objective.lowest for run in runs], [0.25, 0.5, 0.75])
            seconds = (time.perf_counter() - started) / len(SEEDS)
            print(f"  {name:26s}{middle:12.4f}{low:12.4f} to{high:8.4f}{seconds:8.0f}", flush=True)


if __name__ == "__main__":
    table([name for name in sys.argv[1:] if name in PROBLEMS] or PROBLEMS)
