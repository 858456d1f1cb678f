"""What the items on tables judge and draw: on how many sets the default is level with the best of the library."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from metaprior.plots.style import colour
from metaprior_reproduction.parts.figures import panels
from metaprior_reproduction.parts.item import Results, Verdict
from metaprior_reproduction.parts.ranking import best, is_level_with_best
from metaprior_reproduction.parts.table_models import DEFAULT, LARGER, MODELS, NOISY, OUTSIDE, left_out
from metaprior_reproduction.parts.verdicts import clearly, said

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The number of sets.
NUM_SETS = 9


def enough(results: Results, of_nine: int) -> int:
    """Return the number of sets that stands for so many of nine."""
    return math.ceil(of_nine * len(results.config["splits"]) / NUM_SETS)


def level_in_library(results: Results, metric: str, words: str, of_nine: int) -> Verdict:
    """Judge on how many sets the default is level with the best of the library's models; `words` name the metric."""
    names, least = list(results.config["splits"]), enough(results, of_nine)
    level, behind, alone = [], [], 0
    for name in names:
        models = compared(results, name, metric)
        others = [model for model in models if model not in (LARGER, NOISY)]
        alone += is_level_with_best(results, name, DEFAULT, others, metric)
        if is_level_with_best(results, name, DEFAULT, models, metric):
            level.append(name)
        else:
            behind.append(_told_behind(results, name, best(results, name, models, metric), metric))
    absent = left_out(results.config)
    return clearly(
        f"The default is the best of the library's models, or within one standard error of it, on at least {least} of "
        f"{len(names)} sets ({words}).",
        len(level) >= least,
        f"{level_words(level, behind)}; without our other configurations level on {alone}"
        + (f"; {absent}" if absent else ""),
        whose=MODELS[DEFAULT].whose,
    )


def compared(results: Results, name: str, metric: str) -> list[str]:
    """Return the models of the library that have a metric on a set."""
    models = [model for model in results.config["models"] if model not in OUTSIDE]
    return [model for model in models if results.summary(f"{name} {model}", metric).n]


def level_words(level: Sequence[str], behind: Sequence[str]) -> str:
    """Return on which sets the default is level, and on which behind."""
    return f"level on {len(level)} ({', '.join(level) or 'none'}); behind: {'; '.join(behind) or 'none'}"


def _told_behind(results: Results, name: str, lowest: str, metric: str) -> str:
    own, other = (said(results.summary(f"{name} {model}", metric), 4) for model in (DEFAULT, lowest))
    return f"{name} {own}, {lowest} {other}"


def scores_figure(results: Results, metrics: Sequence[str]) -> "Figure":
    """Draw one row per set and one column per metric: means and standard errors of all models."""
    names, models = list(results.config["splits"]), results.config["models"]
    height = 0.5 + 0.19 * len(models)
    figure, axes = panels(len(names), len(metrics), width=8.8 / len(metrics), height=height, sharey=True)
    for line, name in zip(axes, names, strict=True):
        for panel, metric in zip(line, metrics, strict=True):
            for place, model in enumerate(models):
                found = results.summary(f"{name} {model}", metric)
                if found.n:
                    error = np.nan_to_num(found.se)
                    panel.errorbar(found.mean, place, xerr=error, fmt="o", ms=5, capsize=3, color=colour(place))
            unit = " (nats)" if metric.endswith("nll") else ""
            panel.set(title=f"{name}: {metric.replace('_', ' ').upper()}{unit}")
            panel.margins(y=0.1)
    axes[0, 0].set_yticks(range(len(models)), models)
    axes[0, 0].invert_yaxis()
    return figure
