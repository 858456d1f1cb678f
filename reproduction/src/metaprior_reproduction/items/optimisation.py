"""An item of our own: Bayesian optimisation of functions of 2, 6 and 20 dimensions, beside BoTorch's GP."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior import kernels
from metaprior.baselines import ExactGPRegressor
from metaprior.decisions import default_surrogate, minimise
from metaprior_reproduction.parts import botorch_search
from metaprior_reproduction.parts.figures import legend_below, panels
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.verdicts import clearly, is_above, is_below, paired, said
from metaprior_reproduction.problems import BRANIN, HARTMANN6, LEVY20, Objective

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROBLEMS: Mapping[str, Objective] = {"branin": BRANIN, "hartmann6": HARTMANN6, "levy20": LEVY20}
OURS, IMPROVEMENT, GP = "MetaGP, Thompson", "MetaGP, EI", "Exact GP, EI"
BOTORCH, RANDOM = "BoTorch GP, qLogEI", "random"
#: The surrogate and the acquisition function of the methods that run in our own loop.
SEARCHES: Mapping[str, tuple[Callable[[], Any], str]] = {
    OURS: (default_surrogate, "thompson"),
    IMPROVEMENT: (default_surrogate, "ei"),
    GP: (lambda: ExactGPRegressor(kernels.RBF(), n_restarts=1), "ei"),
    RANDOM: (lambda: None, "random"),
}
#: Regrets below this are equal: the logarithm would make differences of nothing.
LEAST = 1e-6

PRESETS: dict[str, Config] = {
    "paper": {
        "seeds": 10,
        "evaluations": {"branin": 40, "hartmann6": 60, "levy20": 100},
        "methods": [OURS, IMPROVEMENT, GP, BOTORCH, RANDOM],
    },
    "smoke": {"seeds": 1, "evaluations": {"branin": 8}, "methods": [OURS, BOTORCH, RANDOM]},
}


def methods(config: Config) -> list[str]:
    """Return every method for every function; that of BoTorch only where it is installed."""
    missing = [] if botorch_search.is_installed() else [BOTORCH]
    chosen = [method for method in config["methods"] if method not in missing]
    return [f"{name} {method}" for name in config["evaluations"] for method in chosen]


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Search once for every seed, and keep the regret after every evaluation."""
    name, how = method.split(" ", 1)
    return [_searched(PROBLEMS[name], how, config["evaluations"][name], seed) for seed in seeds]


def _searched(objective: Objective, method: str, num_evaluations: int, seed: int) -> Outcome:
    started = time.process_time()
    values = _values(objective, method, num_evaluations, seed)
    regret = np.minimum.accumulate(values) - objective.lowest
    found = {
        "regret": float(regret[-1]),
        "log10_regret": float(np.log10(max(regret[-1], LEAST))),
        "log10_regret_half": float(np.log10(max(regret[len(regret) // 2 - 1], LEAST))),
        "cpu_seconds": time.process_time() - started,
    }
    return Outcome(found, {"regret": regret.astype(np.float32)})


def _values(objective: Objective, method: str, num_evaluations: int, seed: int) -> np.ndarray:
    if method == BOTORCH:
        return botorch_search.search(objective, objective.bounds, num_evaluations, seed)
    make, acquisition = SEARCHES[method]
    settings = {"estimator": make(), "acquisition": acquisition, "random_state": seed}
    return minimise(objective, objective.bounds, num_evaluations, **settings).y


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw the median regret after every evaluation, one panel per function and one line per method."""
    problems = list(results.config["evaluations"])
    figure, axes = panels(1, len(problems), width=3.6, height=3.2)
    for panel, name in zip(axes[0], problems, strict=True):
        for number, method in enumerate(results.config["methods"]):
            runs = [run.outcome.arrays["regret"] for run in results.of(f"{name} {method}")]
            if runs:
                middle = np.median(np.maximum(runs, LEAST), axis=0)
                panel.plot(np.arange(1, len(middle) + 1), middle, color=f"C{number}", label=method, lw=1.5)
        panel.set(title=name, xlabel="evaluations", yscale="log")
    axes[0, 0].set_ylabel("median simple regret")
    legend_below(figure, axes[0, 0])
    return {"optimisation": figure}


def judge(results: Results) -> list[Verdict]:
    """Compare the default search with random points and with BoTorch, function by function."""
    found = []
    for name in results.config["evaluations"]:
        found.append(_against_random(results, name))
        if f"{name} {BOTORCH}" in results.methods:
            found.append(_against_botorch(results, name))
    return found


def _against_random(results: Results, name: str) -> Verdict:
    ours, other = f"{name} {OURS}", f"{name} {RANDOM}"
    gap = paired(results, ours, other, "log10_regret")
    missing = "" if f"{name} {BOTORCH}" in results.methods else "; BoTorch is not installed here: it is left out"
    return clearly(
        f"{name}: the default search comes lower than random points.",
        is_below(gap),
        f"{_ends(results, ours, other)}; difference, seed by seed, {said(gap)}{missing}",
        whose="ours",
    )


def _against_botorch(results: Results, name: str) -> Verdict:
    ours, other = f"{name} {OURS}", f"{name} {BOTORCH}"
    gap = paired(results, ours, other, "log10_regret")
    return Verdict(
        f"{name}: the default search comes as low as BoTorch's SingleTaskGP with qLogEI, within two standard errors.",
        "worse" if is_above(gap) else "better" if is_below(gap) else "agrees",
        f"{_ends(results, ours, other)}; difference, seed by seed, {said(gap)}",
        "ours",
    )


def _ends(results: Results, *named: str) -> str:
    return "log10 of the regret at the end: " + ", ".join(
        f"{method} {said(results.summary(method, 'log10_regret'))}" for method in named
    )


ITEM = Item(
    title="Of our own: Bayesian optimisation in 2, 6 and 20 dimensions",
    claim=(
        "With the default surrogate, the search comes lower than random points, and as low as BoTorch's SingleTaskGP "
        "with qLogEI after as many evaluations."
    ),
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    notes=(
        "All methods evaluate the same first 2 D + 2 points of a scrambled Sobol sequence. The regret is the lowest "
        "value found less the lowest value of the function; regrets below 1e-6 count as 1e-6. BoTorch runs with its "
        "own defaults, in double precision on one thread. It needs the extra botorch of the library, and its rows are "
        "left out where it is not installed. log10_regret_half is the regret after half of the evaluations."
    ),
)
