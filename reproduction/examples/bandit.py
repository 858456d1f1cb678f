"""The mushroom bandit: the cumulative regret of several policies and models. Writes bandit.png."""

import sys
import time

import numpy as np
from matplotlib.figure import Figure

from metaprior import plots
from metaprior.baselines import MFVIRegressor
from metaprior.decisions import Bandit, default_reward_model
from metaprior.plots.style import colour, legend_above
from metaprior_reproduction.datasets import mushroom
from metaprior_reproduction.problems import Mushrooms

N_ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
SEEDS = range(int(sys.argv[2]) if len(sys.argv) > 2 else 5)

data = mushroom()
ours = default_reward_model(data.X[:50], 2)  # the model that Bandit would build itself
shared = ("hidden_layer_sizes", "max_iter", "batch_size", "n_train_draws", "noise")
mean_field = MFVIRegressor(**{name: getattr(ours, name) for name in shared})
POLICIES = {
    "MetaGP, Thompson": (None, "thompson"),
    "MFVI, Thompson": (mean_field, "thompson"),
    "MetaGP, greedy": (None, "greedy"),
    "MetaGP, epsilon-greedy": (None, "epsilon_greedy"),
    "uniform": (None, "uniform"),
}
found = {}
print(f"cumulative regret after {N_ROUNDS} rounds, mean over {len(SEEDS)} seeds and its standard error")
for name, (model, policy) in POLICIES.items():
    started, runs = time.perf_counter(), []
    for seed in SEEDS:
        bandit = Bandit(2, estimator=model, policy=policy, random_state=seed)
        history = bandit.run(Mushrooms(data.X, data.y, random_state=seed), N_ROUNDS).history
        runs.append(history["cumulative_regret"].to_numpy())
    mean, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=min(1, len(runs) - 1)) / np.sqrt(len(runs))
    seconds = (time.perf_counter() - started) / len(runs)
    print(f"{name:24s}{mean[-1]:8.0f} ± {error[-1]:4.0f}{seconds:8.0f} s per run", flush=True)
    found[name] = mean, error
with plots.style():
    figure = Figure(figsize=(7, 4))
    axes = figure.add_subplot()
    for number, (name, (mean, error)) in enumerate(found.items()):
        rounds = np.arange(1, len(mean) + 1)
        axes.plot(rounds, mean, color=colour(number), label=name)
        axes.fill_between(rounds, mean - error, mean + error, color=colour(number), alpha=0.2, lw=0)
    axes.set(xlabel="round", ylabel="cumulative regret", title="Mushrooms: eat or leave", yscale="log")
    legend_above(axes, ncols=3)
    figure.savefig("bandit.png", dpi=130)
print("picture: bandit.png")
