"""An item of our own: the mushroom bandit, and what part of the regret of random arms a policy has."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior.baselines import MFVIRegressor
from metaprior.decisions import Bandit, default_reward_model
from metaprior_reproduction.datasets import mushroom
from metaprior_reproduction.parts.figures import legend_below, panels
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.verdicts import at_most, clearly, is_below, paired, said
from metaprior_reproduction.problems import Mushrooms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OURS, NARROW, GREEDY = "MetaGP, Thompson", "MetaGP, Thompson, spread 0.5", "MetaGP, greedy"
MFVI, UNIFORM = "BNN-MFVI, Thompson", "uniform"
#: What the default model should reach, in percent of the regret of random arms.
MOST_SHARE = 12.0
#: Published shares with their standard errors over 30 trials (BatchEnsemble paper): multitask GP, ensemble, dropout.
PUBLISHED = "multitask GP 12.9 ± 4.7, naive ensemble 13.4 ± 3.8, dropout 15.1 ± 8.2"
#: The settings that the mean-field network shares with the default model.
SHARED = ("hidden_layer_sizes", "max_iter", "batch_size", "n_train_draws", "noise")

PRESETS: dict[str, Config] = {
    "paper": {"seeds": 10, "num_rounds": 2000, "methods": [OURS, NARROW, GREEDY, MFVI, UNIFORM]},
    "smoke": {"seeds": 2, "num_rounds": 60, "methods": [OURS, UNIFORM]},
}


def _mean_field() -> MFVIRegressor:
    ours = default_reward_model(mushroom().X[:50], Mushrooms.num_arms)
    return MFVIRegressor(**{name: getattr(ours, name) for name in SHARED if getattr(ours, name) != "auto"})


#: The model of the rewards (None: the default), and the settings of the bandit.
POLICIES: Mapping[str, tuple[Callable[[], Any], Mapping[str, Any]]] = {
    OURS: (lambda: None, {"policy": "thompson", "spread": 1.0}),
    NARROW: (lambda: None, {"policy": "thompson", "spread": 0.5}),
    GREEDY: (lambda: None, {"policy": "greedy"}),
    MFVI: (_mean_field, {"policy": "thompson", "spread": 1.0}),
    UNIFORM: (lambda: None, {"policy": "uniform"}),
}


def methods(config: Config) -> list[str]:
    """Return the policies."""
    return list(config["methods"])


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Play a stream of mushrooms for every seed."""
    return [_played(config["num_rounds"], method, seed) for seed in seeds]


def _played(num_rounds: int, method: str, seed: int) -> Outcome:
    data, (make, settings) = mushroom(), POLICIES[method]
    stream, started = Mushrooms(data.X, data.y, random_state=seed), time.process_time()
    bandit = Bandit(Mushrooms.num_arms, estimator=make(), random_state=seed, **settings).run(stream, num_rounds)
    regret = np.cumsum(bandit.regrets)
    share = 100 * regret / uniform_regret(stream, num_rounds)
    found = {
        "regret": float(regret[-1]),
        "share": float(share[-1]),
        "cpu_seconds": time.process_time() - started,
    }
    return Outcome(found, {"share": share.astype(np.float32)})


def uniform_regret(stream: Mushrooms, num_rounds: int) -> np.ndarray:
    """Return the expected regret of random arms so far, after every round of a stream."""
    expected = stream.expected(np.arange(num_rounds))
    return np.asarray(np.cumsum(expected.max(axis=1) - expected.mean(axis=1)))


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw the regret so far in percent of that of random arms: mean and standard error, one line per policy."""
    figure, axes = panels(1, 1, width=5.5, height=3.8)
    (panel,) = axes[0]
    for number, method in enumerate(results.methods):
        runs = np.array([run.outcome.arrays["share"] for run in results.of(method)])
        mean, rounds = runs.mean(axis=0), np.arange(1, runs.shape[1] + 1)
        se = runs.std(axis=0, ddof=min(1, len(runs) - 1)) / np.sqrt(len(runs))
        panel.fill_between(rounds, mean - se, mean + se, color=f"C{number}", alpha=0.2, lw=0)
        panel.plot(rounds, mean, color=f"C{number}", lw=1.5, label=method)
    panel.axhline(MOST_SHARE, color="0.4", lw=0.8, ls="--")
    panel.set(xlabel="round", ylabel="regret so far, in % of random arms", ylim=(0, 130), xlim=(0, len(rounds)))
    legend_below(figure, panel)
    return {"bandit": figure}


def judge(results: Results) -> list[Verdict]:
    """Compare the default model, without a narrowed posterior, with its bar and with mean-field VI."""
    share = results.summary(OURS, "share")
    found = [
        at_most(
            f"{OURS}: the regret, with the posterior as it is, is at most {MOST_SHARE:g} % of that of random arms.",
            share,
            MOST_SHARE,
            f"{said(share, 1)} %; published: {PUBLISHED}",
            whose="ours",
        )
    ]
    if MFVI in results.methods:
        gap = paired(results, OURS, MFVI, "regret")
        claim = f"{OURS}: less regret than with mean-field VI, which has the same network and policy."
        found.append(clearly(claim, is_below(gap), f"difference, seed by seed, {said(gap, 0)}", whose="ours"))
    return found


ITEM = Item(
    title="Of our own: the mushroom bandit",
    claim=(
        "Thompson sampling with the default model has at most 12 % of the regret of random arms after 2000 mushrooms, "
        "with the posterior as it is and not narrowed."
    ),
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    notes=(
        "Every seed is one stream of mushrooms, the same for all policies. The share is in percent of the expected "
        "regret of random arms on that stream. Leaving an edible mushroom has a regret of 5, eating a poisonous one of "
        "15. Published shares are of 30 trials of the BatchEnsemble paper; the dashed line is at 12 %."
    ),
)
