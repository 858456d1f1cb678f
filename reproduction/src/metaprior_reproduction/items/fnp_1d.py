"""Appendix figure: 20 points of a one-dimensional function, as in the functional neural process paper."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior import metrics
from metaprior_reproduction.datasets import fnp
from metaprior_reproduction.parts.figures import arrays_of, drawable, legend_below, panels, regression_panel, view
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.methods import REGRESSORS, WHOSE, as_float32, curve, fitted, published
from metaprior_reproduction.parts.verdicts import clearly, is_above, paired, said, summarised

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOCAL = "MetaGP-Local[RBF]"
#: The ratio of two standard deviations above which one counts as wider.
WIDER = 1.1
METHODS = ["BNN-MFVI", "MetaNN", "MetaGP", LOCAL, published("MetaGP"), published(LOCAL)]
PRESETS = {
    "paper": {"seeds": 5, "methods": METHODS, "num_points": 500, "settings": {}},
    "smoke": {
        "seeds": 1,
        "methods": ["BNN-MFVI", LOCAL],
        "num_points": 60,
        "settings": {
            "hidden_layer_sizes": [10],
            "n_inducing": 10,
            "max_iter": 100,
            "n_predict_draws": 16,
        },
    },
}


def methods(config: Config) -> list[str]:
    """Return the methods of the figure."""
    return list(config["methods"])


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Fit the one data set from several starts."""
    parts = fnp()
    models = fitted(REGRESSORS[method], config["settings"], seeds, [parts["train"]] * len(seeds))
    return [_outcome(config, model, parts, seed) for model, seed in zip(models, seeds, strict=True)]


def _outcome(config: Config, model: Any, parts: Mapping[str, Any], seed: int) -> Outcome:
    grid, step = parts["grid"], max(1, len(parts["grid"].y) // config["num_points"])
    x, truth = grid.X[::step, 0], grid.y[::step]
    predicted = model.predict_distribution(x[:, None])
    inside, far = (x >= 0) & (x <= 1), (x < -0.5) | (x > 1.5)
    within = np.abs(truth - predicted.mean) < 2 * predicted.std
    found = {
        "in_rmse": metrics.rmse(predicted.mean[inside], truth[inside]),
        "in_covered": float(np.mean(within[inside])),
        "out_covered": float(np.mean(within[~inside])),
        "in_std": float(np.mean(predicted.std[inside])),
        "far_std": float(np.mean(predicted.std[far])),
    }
    shown = {**curve(model, x, parts["train"]), **as_float32({"truth": truth})}
    return Outcome(found, shown if seed == 0 else {})


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw the fit of every method."""
    shown = drawable(results)
    figure, axes = panels(1, max(1, len(shown)), width=3.4, height=2.8, sharex=True, sharey=True)
    for panel, method in zip(axes[0], shown, strict=True):
        arrays = arrays_of(results, method)
        regression_panel(panel, arrays, method)
        panel.set_xlabel("x")
        view(panel, [arrays["truth"]], 0.4)
    axes[0, 0].set_ylabel("y")
    legend_below(figure, axes[0, 0])
    return {"fnp-1d": figure}


def judge(results: Results) -> list[Verdict]:
    """Test that every method's bars grow away from the data, and that the local ones cover more there than MFVI's."""
    verdicts = []
    for method in results.methods:
        growth = summarised(np.log(results.values(method, "far_std")) - np.log(results.values(method, "in_std")))
        verdicts.append(
            clearly(
                f"{method}: the bars are wider, by a tenth or more, far from the data than among them.",
                is_above(growth, np.log(WIDER)),
                f"standard deviation {said(results.summary(method, 'in_std'))} on [0, 1], "
                f"{said(results.summary(method, 'far_std'))} beyond half a unit from it; RMSE on [0, 1] "
                f"{said(results.summary(method, 'in_rmse'))}; the function lies within two standard deviations at "
                f"{said(results.summary(method, 'in_covered'), 2)} of x inside, "
                f"{said(results.summary(method, 'out_covered'), 2)} outside",
                whose=WHOSE[method],
            )
        )
    for local in [method for method in (LOCAL, published(LOCAL)) if {method, "BNN-MFVI"} <= set(results.methods)]:
        gain = paired(results, local, "BNN-MFVI", "out_covered")
        verdicts.append(
            clearly(
                f"Outside the data the function lies within the bars of {local} more often than within those of MFVI.",
                is_above(gain),
                f"share of x, {local} less BNN-MFVI: {said(gain, 2)}",
                whose=WHOSE[local],
            )
        )
    return verdicts


ITEM = Item(
    title="Appendix figure: a one-dimensional test function",
    claim="Mean and error bars of MFVI, MetaNN, MetaGP and MetaGP with an input kernel on 20 points: the bars say "
    "where there are no data.",
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    together=5,
    notes=(
        "The paper shows the figure and claims nothing in numbers; the expectations tested here are ours. The input "
        "kernel is an RBF. Rows `as published` have the paper's own inference, in which every weight is drawn. "
        "The data are one fixed set; seeds decide starts and draws."
    ),
)
