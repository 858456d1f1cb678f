"""The mushroom bandit: cumulative regret of Thompson sampling with several models, and of its rivals, drawn."""

import sys
import time
import warnings

import numpy as np
from matplotlib.figure import Figure

from metaprior.bandit import Bandit, default_reward_model, simulate
from metaprior.baselines import MFVIRegressor
from metaprior_reproduction.datasets import mushroom
from metaprior_reproduction.problems import Mushrooms

NUM_ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
SEEDS = range(int(sys.argv[2]) if len(sys.argv) > 2 else 5)

warnings.filterwarnings("ignore", message="the median distance")
data = mushroom()
ours = default_reward_model(data.X[:50], 2)  # what Bandit would take by itself
shared = ("hidden_layer_sizes", "max_iter", "batch_size", "n_train_draws", "noise")
mean_field = MFVIRegressor(**{name: getattr(ours, name) for name in shared})
RIVALS = {
    "MetaGP, Thompson": (None, "thompson"),
    "MFVI, Thompson": (mean_field, "thompson"),
    "MetaGP, greedy": (None, "greedy"),
    "MetaGP, epsilon-greedy": (None, "epsilon_greedy"),
    "uniform": (None, "uniform"),
}
figure = Figure(figsize=(7, 4), layout="constrained")
axes = figure.add_subplot()
print(f"cumulative regret after {NUM_ROUNDS} rounds, mean over {len(SEEDS)} seeds and its standard error")
for name, (model, policy) in RIVALS.items():
    started, runs = time.perf_counter(), []
    for seed in SEEDS:
        bandit = Bandit(2, model=model, policy=policy, random_state=seed)
        history = simulate(bandit, Mushrooms(data.X, data.y, random_state=seed), NUM_ROUNDS)
        runs.append(history["cumulative_regret"].to_numpy())
    mean, error = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=min(1, len(runs) - 1)) / np.sqrt(len(runs))
    seconds = (time.perf_counter() - started) / len(runs)
    print(f"{name:24s}{mean[-1]:8.0f} ± {error[-1]:4.0f}{seconds:8.0f} s a run", flush=True)
    (line,) = axes.plot(history["round"], mean, label=name)
    axes.fill_between(history["round"], mean - error, mean + error, color=line.get_color(), alpha=0.2, lw=0)
axes.set(xlabel="round", ylabel="cumulative regret", title="Mushrooms: eat or leave", yscale="log")
axes.legend()
figure.savefig("bandit.png", dpi=130)
print("picture: bandit.png")
