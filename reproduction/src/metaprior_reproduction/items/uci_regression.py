"""An item of our own: MetaGP and the baselines on the nine UCI sets with their standard splits."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior import kernels
from metaprior.baselines import ExactGPRegressor
from metaprior.datasets import Split
from metaprior.estimators import MetaGPRegressor
from metaprior.plots.style import colour
from metaprior_reproduction.datasets import UCI, uci, uci_splits
from metaprior_reproduction.parts.figures import panels
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.methods import REGRESSORS, error_and_nll, fitted
from metaprior_reproduction.parts.verdicts import Word, is_above, is_below, paired

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOCAL = "MetaGP-Local[RBF]"
RESIDUAL = "MetaGP-Residual"
MFVI = "BNN-MFVI"
GP = "Exact GP-RBF"
OURS = ("MetaGP", LOCAL, RESIDUAL)
MODELS = (*OURS, MFVI, "Ensemble", "Laplace", GP)
#: The part of training for which the noise is held, for models in which every weight is free to fit noise. The usual
#: 0.8 suits few rows (docs/method.md, "Training with every weight drawn").
NOISE_HOLD = {RESIDUAL: 0.5, MFVI: 0.5}
#: The other four sets, of 8000 rows and more, have fewer splits and more steps.
SMALL_SETS = ("bostonHousing", "concrete", "energy", "wine-quality-red", "yacht")

PRESETS: dict[str, Config] = {
    "paper": {
        "seeds": 20,
        "models": list(MODELS),
        "splits": {name: 20 if name in SMALL_SETS else 5 for name in UCI},
        "steps": {name: 3000 if name in SMALL_SETS else 5000 for name in UCI},
        "hidden_layer_sizes": [50],
        "noise_hold": NOISE_HOLD,
        "gp_rows": 2000,
        "gp_steps": 100,
        "gp_restarts": 0,
    },
    "smoke": {
        "seeds": 1,
        "models": [LOCAL, RESIDUAL, "Ensemble", GP],
        "splits": {"yacht": 1},
        "steps": {"yacht": 50},
        "hidden_layer_sizes": [10],
        "noise_hold": NOISE_HOLD,
        "gp_rows": 60,
        "gp_steps": 5,
        "gp_restarts": 0,
    },
}


def methods(config: Config) -> list[str]:
    """Return every model for every set."""
    return [f"{name} {model}" for name in config["splits"] for model in config["models"]]


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Fit the standard split of every seed; a seed beyond the splits of a set has no metrics."""
    name, model = method.split(" ", 1)
    numbers = [seed for seed in seeds if seed < config["splits"][name]]
    X, y = uci(name)
    splits = uci_splits(name, numbers)
    train = [Split(X[rows], y[rows]) for rows, _ in splits]
    if model == GP:
        train = [subset(part, config["gp_rows"], seed) for part, seed in zip(train, numbers, strict=True)]
    models = fitted(_made(model, config), _settings(config, name, model), numbers, train) if numbers else []
    outcomes = [
        Outcome({**error_and_nll(own, Split(X[test], y[test])), "rows": float(len(part.y))})
        for own, part, (_, test) in zip(models, train, splits, strict=True)
    ]
    return [*outcomes, *[Outcome({}) for _ in range(len(seeds) - len(outcomes))]]


def _made(model: str, config: Config) -> Callable[[], Any]:
    if model == GP:
        return lambda: ExactGPRegressor(kernels.RBF(), n_restarts=config["gp_restarts"])
    if model == RESIDUAL:
        return lambda: MetaGPRegressor(residual_layers="all")
    return REGRESSORS[model]


def _settings(config: Config, name: str, model: str) -> dict[str, Any]:
    steps = config["gp_steps"] if model == GP else config["steps"][name]
    return {**config, "max_iter": steps, "noise_hold": config["noise_hold"].get(model)}


def subset(part: Split, most: int, seed: int) -> Split:
    """Return at most `most` rows, at random."""
    rows = np.random.default_rng(seed).permutation(len(part.y))[:most]
    return Split(part.X[rows], part.y[rows])


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw RMSE beside NLL, one row per set: means and standard errors of all models."""
    names, models = list(results.config["splits"]), results.config["models"]
    figure, axes = panels(len(names), 2, width=4.4, height=0.5 + 0.19 * len(models), sharey=True)
    for line, name in zip(axes, names, strict=True):
        for panel, metric in zip(line, ("rmse", "nll"), strict=True):
            for place, model in enumerate(models):
                found = results.summary(f"{name} {model}", metric)
                error = np.nan_to_num(found.se)
                panel.errorbar(found.mean, place, xerr=error, fmt="o", ms=5, capsize=3, color=colour(place))
            panel.set_title(f"{name}: {metric.upper()} of test rows{' (nats)' if metric == 'nll' else ''}")
            panel.margins(y=0.1)
    axes[0, 0].set_yticks(range(len(models)), models)
    axes[0, 0].invert_yaxis()
    return {"uci-regression": figure}


def judge(results: Results) -> list[Verdict]:
    """Count the sets on which a model of ours is clearly better than each baseline, and clearly worse."""
    models = results.config["models"]
    own, peers = ([model for model in models if (model in OURS) is kind] for kind in (True, False))
    return [_verdict(results, ours, peer, metric) for ours in own for metric in ("nll", "rmse") for peer in peers]


def _verdict(results: Results, ours: str, peer: str, metric: str) -> Verdict:
    found = {name: paired(results, f"{name} {ours}", f"{name} {peer}", metric) for name in results.config["splits"]}
    won = [name for name, difference in found.items() if is_below(difference)]
    lost = [name for name, difference in found.items() if is_above(difference)]
    outcome: Word = "better" if len(won) > len(lost) else "worse" if len(lost) > len(won) else "agrees"
    return Verdict(
        f"{ours} is as good as {peer} on the standard splits ({metric.upper()}).",
        outcome,
        f"lower by two standard errors on {_listed(won)}; higher on {_listed(lost)}; of {len(found)} sets",
    )


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} ({', '.join(names)})" if names else "none"


ITEM = Item(
    title="Of our own: UCI regression",
    claim=(
        "On the nine sets with their standard splits MetaGP is as good as mean-field VI, ensembles, Laplace and an "
        "exact GP: the sets on which it is clearly better and clearly worse are counted, for the global model, the "
        "local one with an RBF on the inputs, and the global one whose weights may each leave the GP (residual_layers)."
    ),
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    together=5,
    notes=(
        'One hidden layer of 50 tanh units; MetaGP-Residual is the global model with `residual_layers="all"`; it and '
        "BNN-MFVI have `noise_hold=0.5`, which is better for both on most tables of a trial beside these; defaults "
        "otherwise. A seed is a split. The five small sets have 20 splits and 3000 "
        "steps, the four large ones (kin8nm, naval, power, protein) 5 splits and 5000 steps; batches are 256 above 512 "
        "rows. The exact GP has an RBF with a lengthscale a column and learns from at most 2000 random rows (`rows` "
        "says how many a fit had). Scores are in the units of the targets. Wine's ratings are whole numbers and a "
        "third of its test rows are training rows too (51 of 160 in the first split): the exact GP learns next to no "
        "noise there, and its NLL is below any that a forecast of new wines could have."
    ),
)
