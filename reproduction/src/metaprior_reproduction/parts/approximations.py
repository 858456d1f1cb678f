"""What the two items on conditionals share: the grid of methods, timed fits, curves of the bound, and verdicts.

A conditional says how weights are drawn given the latents; "global" is one GP for all layers, "layer" one per layer.
"""

import time
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from metaprior.plots.style import colour
from metaprior_reproduction.parts.figures import arrays_of, legend_below, panels
from metaprior_reproduction.parts.item import Config, Results, Summary, Verdict
from metaprior_reproduction.parts.methods import configured
from metaprior_reproduction.parts.verdicts import Word, clearly, is_above, is_below, paired, said, summarised

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The fraction of training, at its end, over which the reported bound is averaged.
LAST = 0.1
#: Steps that are averaged for one point of a curve.
EVERY = 10
#: An error is close to that of the full conditional if it is larger by at most this fraction.
CLOSE = 0.2
#: Steps that are run before the clock starts, to compile the program.
WARM_UP = 10
#: Which layers share a GP: the words in method names, and the parameter `weight_gp` of the estimators.
WEIGHT_GPS = {"global": "shared", "layer": "per_layer"}


class Timed(NamedTuple):
    """A fitted estimator and the seconds that a step took, without compilation."""

    model: Any
    seconds_a_step: float

    def metrics(self) -> dict[str, float]:
        """Return the bound at the end, the time of a step and the time of training."""
        history = self.model.elbo_history_
        last = history[-max(1, round(LAST * len(history))) :]
        return {
            "elbo": float(np.mean(last)),
            "seconds_a_step": self.seconds_a_step,
            "seconds_of_training": self.seconds_a_step * len(history),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the bound against steps and seconds; each point is the mean of `EVERY` steps."""
        history = np.asarray(self.model.elbo_history_)
        count = len(history) // EVERY
        bound = history[: count * EVERY].reshape(count, EVERY).mean(axis=1)
        step = EVERY * (np.arange(count) + 0.5)
        return {"step": step, "seconds": step * self.seconds_a_step, "elbo": bound}


def name_of(conditional: str, mapping: str) -> str:
    """Return the name of a method."""
    return f"{conditional}, {mapping}"


def methods(config: Config) -> list[str]:
    """Return every conditional with every mapping."""
    return [method for row in grid_of(config) for method in row]


def grid_of(config: Config) -> list[list[str]]:
    """Return the methods as figures show them: one row per mapping, one column per conditional."""
    return [[name_of(own, mapping) for own in config["conditionals"]] for mapping in config["mappings"]]


def timed_fit(make: Callable[..., Any], config: Config, method: str, seed: int, X: np.ndarray, y: np.ndarray) -> Timed:
    """Fit a few steps to compile the program, then time the whole fit."""
    conditional, mapping = method.split(", ")

    def model(**changed: int) -> Any:
        return configured(
            make(conditional=conditional, weight_gp=WEIGHT_GPS[mapping], output_layer="drawn"),
            {**config["settings"], **changed},
            seed,
        )

    model(max_iter=WARM_UP).fit(X, y)
    whole = model()
    started = time.perf_counter()
    whole.fit(X, y)
    return Timed(whole, (time.perf_counter() - started) / whole.n_iter_)


# --- figures ---------------------------------------------------------------------------------


def bounds_figure(results: Results) -> "Figure":
    """Draw the bounds against epochs and against time."""
    figure, axes = panels(1, 2, width=5.0, height=3.4)
    bound_panels(axes[0], results)
    legend_below(figure, axes[0, 0], ncols=len(results.config["conditionals"]))
    return figure


def bound_panels(axes: Sequence["Axes"], results: Results) -> None:
    """Draw the bound against steps and against time: one colour per conditional, one line style per mapping."""
    conditionals, mappings = results.config["conditionals"], results.config["mappings"]
    levels = []
    # conditional after conditional, so that each has one column of the legend
    for conditional, mapping in product(conditionals, mappings):
        arrays = arrays_of(results, name_of(conditional, mapping))
        if not arrays:
            continue
        style: dict[str, Any] = {
            "color": colour(conditionals.index(conditional)),
            "ls": ("-", "--")[mappings.index(mapping)],
        }
        levels += [np.median(arrays["elbo"]), np.max(arrays["elbo"])]
        for panel, across in zip(axes, ("step", "seconds"), strict=True):
            panel.plot(arrays[across], arrays["elbo"], lw=1.0, label=name_of(conditional, mapping), **style)
    for panel, across in zip(axes, ("epoch (one step sees all rows)", "seconds, compilation left out"), strict=True):
        panel.set(xlabel=across, ylabel="bound (nats)")
        if levels:
            low, high = min(levels), max(levels)
            panel.set_ylim(low - 1.5 * (high - low), high + 0.1 * (high - low))


# --- verdicts --------------------------------------------------------------------------------


def judged(results: Results, error: str, words: str) -> list[Verdict]:
    """Test, for every mapping, that diag is faster than full and that its error is close to that of full.

    `error` names a metric for which smaller is better, and `words` describes it.
    """
    verdicts = []
    for mapping in results.config["mappings"]:
        full, diag = name_of("full", mapping), name_of("diag", mapping)
        if results.of(full) and results.of(diag):
            verdicts += [_faster(results, full, diag), _close(results, full, diag, error, words)]
    return verdicts


def _faster(results: Results, full: str, diag: str) -> Verdict:
    one, other = (results.values(method, "seconds_a_step") for method in (diag, full))
    ratio = summarised(np.log(one / other))
    rows = [f"{method} {1e3 * results.summary(method, 'seconds_a_step').mean:.2f}" for method in results.methods]
    return clearly(
        f"{diag}: a step is faster than with the full conditional.",
        is_below(ratio),
        f"time over that of full {np.exp(ratio.mean):.2f}; milliseconds a step: " + ", ".join(rows),
        whose="as published",
    )


def _close(results: Results, full: str, diag: str, error: str, words: str) -> Verdict:
    gap, scale = paired(results, diag, full, error), abs(results.summary(full, error).mean)
    rows = [f"{method} {said(results.summary(method, error))}" for method in results.methods]
    claim = f"{diag}: the {words} is close to that of the full conditional (at most {CLOSE:.0%} larger)."
    return Verdict(claim, closeness(gap, scale), f"{words}: " + ", ".join(rows), "as published")


def closeness(gap: Summary, scale: float) -> Word:
    """Return "better" if an error is clearly smaller, "worse" if it is clearly too large, else "agrees"."""
    if is_above(gap, CLOSE * scale):
        return "worse"
    return "better" if is_below(gap) else "agrees"
