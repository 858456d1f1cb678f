"""Figure 5: four classes in the plane, and what the methods predict near the data and far from them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metaprior import metrics
from metaprior.datasets import Split
from metaprior_reproduction.datasets import four_class as data_set
from metaprior_reproduction.parts.figures import arrays_of, class_panel, drawable, entropy_bar, label_edges, panels
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.methods import CLASSIFIERS, WHOSE, as_float32, class_map, fitted, published
from metaprior_reproduction.parts.verdicts import clearly, is_below, margin, paired, said

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOCAL = "MetaGP-Local[RBF]"
#: The methods that the paper calls over-confident far away.
OVERCONFIDENT = ("BNN-MFVI", "DKL")
#: The radius of the far ring, the number of points on it, and the fraction of log 4 above which entropy is maximal.
RADIUS, ON_RING, MAXIMAL = 20.0, 200, 0.95
#: How many methods are drawn beside each other.
ABREAST = 4
#: Half-widths of the two maps.
NEAR, FAR = 4.0, 20.0
PRESETS = {
    "paper": {
        "seeds": 5,
        "methods": [
            "MetaGP",
            LOCAL,
            "MetaGP-Local[Periodic]",
            "BNN-MFVI",
            "BNN-HMC",
            "DKL",
            "MetaNN",
            published("MetaGP"),
            published(LOCAL),
            published("MetaGP-Local[Periodic]"),
        ],
        "num_rows": 100,
        "num_test": 1000,
        "map_size": 80,
        "settings": {"hidden_layer_sizes": [50], "activation": "relu", "latent_dim": 2},
    },
    "smoke": {
        "seeds": 1,
        "methods": [LOCAL, "BNN-MFVI"],
        "num_rows": 40,
        "num_test": 100,
        "map_size": 16,
        "settings": {
            "hidden_layer_sizes": [8],
            "activation": "relu",
            "latent_dim": 2,
            "n_inducing": 10,
            "max_iter": 50,
            "n_predict_draws": 16,
        },
    },
}


def methods(config: Config) -> list[str]:
    """Return the methods of the figure."""
    return list(config["methods"])


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Fit the one data set from several starts."""
    train, test = data_set(config["num_rows"]), data_set(config["num_test"], seed=1)
    models = fitted(CLASSIFIERS[method], config["settings"], seeds, [train] * len(seeds))
    return [_outcome(config, model, train, test, seed) for model, seed in zip(models, seeds, strict=True)]


def _outcome(config: Config, model: Any, train: Split, test: Split, seed: int) -> Outcome:
    known, new, ring = (model.predict_distribution(points) for points in (train.X, test.X, ring_points()))
    largest = np.log(known.probabilities.shape[1])
    found = {
        "ring_entropy": float(np.mean(ring.entropy) / largest),
        "data_entropy": float(np.mean(known.entropy) / largest),
        "train_accuracy": metrics.accuracy(known.probabilities, train.y),
        "accuracy": metrics.accuracy(new.probabilities, test.y),
        "nll": -float(np.mean(new.log_prob(test.y))),
    }
    if seed != 0:
        return Outcome(found)
    size = config["map_size"]
    maps = {"near": class_map(model, NEAR, size), "far": class_map(model, FAR, size)}
    return Outcome(found, as_float32({**maps, "train_x": train.X, "train_y": train.y}))


def ring_points() -> np.ndarray:
    """Return points on the far ring, [ON_RING, 2]."""
    angle = np.linspace(0, 2 * np.pi, ON_RING, endpoint=False)
    return RADIUS * np.column_stack([np.cos(angle), np.sin(angle)])


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw two panels per method, and up to four methods beside each other: near the data, and zoomed out below."""
    shown = drawable(results)
    columns = max(1, min(ABREAST, len(shown)))
    figure, axes = panels(2 * -(-len(shown) // columns), columns, width=2.4, height=2.3)
    for number, method in enumerate(shown):
        row, column = 2 * (number // columns), number % columns
        arrays = arrays_of(results, method)
        points, labels = arrays["train_x"], arrays["train_y"].astype(int)
        image = class_panel(axes[row, column], arrays["near"], NEAR, points, labels, method)
        share = results.summary(method, "ring_entropy").mean
        class_panel(axes[row + 1, column], arrays["far"], FAR, points, labels, f"at radius {RADIUS:g}: {share:.2f}")
    label_edges(axes, "x₁", "x₂")
    if shown:
        entropy_bar(figure, image, axes)
    return {"four-class": figure}


def judge(results: Results) -> list[Verdict]:
    """Test that the local RBF model is uncertain on the far ring, and that the over-confident methods are less so."""
    verdicts, shown = [], results.methods
    for local in [method for method in (LOCAL, published(LOCAL)) if method in shown]:
        ours = results.summary(local, "ring_entropy")
        verdicts.append(
            clearly(
                f"{local} returns to maximal entropy far from the data: at least {MAXIMAL} log 4 on a ring of radius "
                f"{RADIUS:g}.",
                ours.mean + margin(ours) >= MAXIMAL,
                f"{said(ours)} of log 4; accuracy on new rows {said(results.summary(local, 'accuracy'))}",
                whose=WHOSE[local],
            )
        )
    for peer in [method for method in OVERCONFIDENT if method in shown and LOCAL in shown]:
        gap = paired(results, peer, LOCAL, "ring_entropy")
        verdicts.append(
            clearly(
                f"{peer} stays over-confident far from the data: less entropy there than {LOCAL}.",
                is_below(gap),
                f"{said(results.summary(peer, 'ring_entropy'))} of log 4 against "
                f"{said(results.summary(LOCAL, 'ring_entropy'))}",
                whose=WHOSE[peer],
            )
        )
    return verdicts


ITEM = Item(
    title="Figure 5: four classes, near the data and far away",
    claim="MetaGP-Local[RBF] returns to maximal entropy far from the data; MFVI and DKL stay over-confident.",
    presets=PRESETS,
    methods=methods,
    compute=compute,
    draw=draw,
    judge=judge,
    together=5,
    notes=(
        "The data are one fixed set; seeds decide starts and draws. The background is the entropy, lines are where a "
        "class has probability 0.7; the zoom-out (to 20) and the ring are ours. Accuracy and NLL are of 1000 new rows "
        "of the same generator. A periodic kernel starts its two periods from the spectrum of the class numbers. DKL "
        "is an RBF on the features of the last hidden layer: ReLU features grow without bound, and it can return to "
        "its prior far away. Rows `as published` have the paper's own inference: every weight drawn, independently "
        "given the latents and the inducing values."
    ),
)
