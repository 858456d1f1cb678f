"""Appendix figure: conditionals of the weights on four classes, with bounds over epochs and time, and predictions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from metaprior import metrics
from metaprior.estimators import MetaGPClassifier
from metaprior_reproduction.datasets import four_class
from metaprior_reproduction.parts.approximations import bounds_figure, grid_of, judged, methods, timed_fit
from metaprior_reproduction.parts.figures import arrays_of, class_panel, drawable, entropy_bar, label_edges, panels
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.methods import as_float32, class_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Half-width of the maps.
LIMIT = 4.0
PRESETS = {
    "paper": {
        "seeds": 5,
        "conditionals": ["full", "fitc", "diag", "pathwise"],
        "mappings": ["global", "layer"],
        "num_rows": 100,
        "num_test": 1000,
        "map_size": 60,
        "settings": {"hidden_layer_sizes": [50], "activation": "relu", "n_inducing": 50},
    },
    "smoke": {
        "seeds": 1,
        "conditionals": ["full", "diag"],
        "mappings": ["global"],
        "num_rows": 40,
        "num_test": 100,
        "map_size": 12,
        "settings": {
            "hidden_layer_sizes": [8],
            "activation": "relu",
            "n_inducing": 8,
            "max_iter": 50,
            "n_predict_draws": 16,
        },
    },
}


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Time fits to the one data set, from one start after the other."""
    return [_outcome(config, method, seed) for seed in seeds]


def _outcome(config: Config, method: str, seed: int) -> Outcome:
    train, test = four_class(config["num_rows"]), four_class(config["num_test"], seed=1)
    fit = timed_fit(MetaGPClassifier, config, method, seed, *train)
    predicted = fit.model.predict_distribution(test.X)
    found = {
        **fit.metrics(),
        "accuracy": metrics.accuracy(predicted.probabilities, test.y),
        "nll": -float(np.mean(predicted.log_prob(test.y))),
    }
    if seed != 0:
        return Outcome(found)
    shown = {"map": class_map(fit.model, LIMIT, config["map_size"]), "train_x": train.X, "train_y": train.y}
    return Outcome(found, as_float32({**fit.arrays(), **shown}))


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw the bounds, and the predictions with one row per mapping and one column per conditional."""
    names = grid_of(results.config)
    figure, axes = panels(len(names), len(names[0]), width=2.4, height=2.3, sharex=True, sharey=True)
    image = None
    for panel, method in zip(axes.flat, methods(results.config), strict=True):
        if method in drawable(results):
            arrays = arrays_of(results, method)
            labels = arrays["train_y"].astype(int)
            image = class_panel(panel, arrays["map"], LIMIT, arrays["train_x"], labels, method)
    label_edges(axes, "x₁", "x₂")
    if image is not None:
        entropy_bar(figure, image, axes)
    return {"approx-classification-bounds": bounds_figure(results), "approx-classification-predictions": figure}


def judge(results: Results) -> list[Verdict]:
    """Test that `diag` is faster than `full` and close to it."""
    return judged(results, "nll", "NLL of new rows")


ITEM = Item(
    title="Appendix figure: approximate conditionals, classification",
    claim="The diagonal conditional is fast and close to the full one, with one GP for all layers or one a layer.",
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    notes=(
        "The four-class data, 2-50-4, ReLU, M = 50, no input kernel. The data are one fixed set; seeds decide starts "
        "and draws. `pathwise` is ours. The bound is that of the conditional it is trained with, its KL in full. Our "
        "`full` costs (H + M)^3, not W^3. Times are of one process; run this item with one job."
    ),
)
