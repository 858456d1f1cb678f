"""Bayesian optimisation of the Branin function, with a picture of the search.

With --baselines the script prints the simple regret of several surrogates on three functions instead. That takes about
half an hour on two cores; `--baselines branin` (or hartmann6, ripples) prints one part of the table.
"""

import sys
import time
import warnings

import numpy as np

from metaprior import kernels
from metaprior.baselines import ExactGPRegressor, MFVIRegressor
from metaprior.decisions import default_surrogate, minimise
from metaprior.optimise.problems import BRANIN, HARTMANN6, PERIOD, RIPPLES

SEEDS = range(5)
#: Function, evaluations, and what is known of it.
PROBLEMS = {
    "branin": (BRANIN, 40, {"RBF": kernels.RBF()}),
    "hartmann6": (HARTMANN6, 60, {"RBF": kernels.RBF()}),
    "ripples": (RIPPLES, 30, {"periodic": kernels.Periodic(PERIOD, fixed=("period",)), "RBF": kernels.RBF()}),
}


def baselines(known):
    """Return surrogates and rules by name."""
    for name, kernel in known.items():
        yield f"MetaGP, {name}", default_surrogate(kernel), "thompson"
        yield f"exact GP, {name}", ExactGPRegressor(kernel, n_restarts=1), "thompson"
        yield f"exact GP, {name}, EI", ExactGPRegressor(kernel, n_restarts=1), "ei"
    yield "MFVI", MFVIRegressor(max_iter=1000, noise=0.02), "thompson"
    yield "random", None, "random"


def table(chosen):
    """Print median and quartiles of the simple regret over seeds."""
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


def picture():
    """Minimise Branin and draw the points, what the surrogate believes, and how the regret fell."""
    from matplotlib.figure import Figure

    found = minimise(BRANIN, BRANIN.bounds, 40, random_state=0, verbose=True)
    regret = np.minimum.accumulate(found.y) - BRANIN.lowest
    print(f"lowest value {found.best_y:.4f} at {found.best_x.round(3)}; regret {regret[-1]:.4f}")
    side = [np.linspace(low, high, 80) for low, high in BRANIN.bounds]
    grid = np.stack(np.meshgrid(*side), -1).reshape(-1, 2)
    truth = np.log(np.array([BRANIN(x) for x in grid])).reshape(80, 80)
    believed = found.model.predict(grid).reshape(80, 80)
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    axes = figure.subplots(1, 3)
    for axis, values, title in zip(
        axes, (truth, believed), ("log Branin", "the surrogate's mean (warped)"), strict=False
    ):
        axis.contourf(*side, values, 30, cmap="viridis")
        points = axis.scatter(*found.X.T, c=np.arange(len(found.y)), cmap="autumn", s=18, edgecolors="k", lw=0.4)
        axis.set(title=title, xlabel="x0", ylabel="x1")
    figure.colorbar(points, ax=axes[1], label="evaluation")
    axes[2].semilogy(np.arange(1, len(regret) + 1), regret, "C0.-")
    axes[2].axhline(0.01, color="0.6", lw=1)
    axes[2].set(title="simple regret", xlabel="evaluations", ylabel="best so far less the minimum")
    figure.savefig("optimise.png", dpi=130)
    print("picture: optimise.png")


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="the median distance")
    if "--baselines" in sys.argv:
        table([name for name in sys.argv[2:] if name in PROBLEMS] or PROBLEMS)
    else:
        picture()
