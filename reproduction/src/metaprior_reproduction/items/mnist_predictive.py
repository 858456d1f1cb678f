"""Appendix figure: the class probabilities of every method for single images, digits and Japanese letters."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from metaprior.plots.style import DRAWS, MEAN
from metaprior_reproduction import datasets
from metaprior_reproduction.items.mnist_ood import PRESETS as TRAINED
from metaprior_reproduction.parts.figures import arrays_of, drawable, panels
from metaprior_reproduction.parts.images import CLASSIFIERS, MIXTURE, ONE, PUBLISHED, fitted, outside
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict, Whose
from metaprior_reproduction.parts.verdicts import clearly, said, summarised

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_CLASSES = 10
PRESETS: dict[str, Config] = {
    "paper": {**TRAINED["paper"], "seeds": 1, "images": 6, "draws": 32},
    "smoke": {**TRAINED["smoke"], "images": 2, "draws": 4},
}


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Train on digits; return probabilities and their spread over drawn functions, for a few images of both sets."""
    return [_outcome(config, method, seed) for seed in seeds]


def _outcome(config: Config, method: str, seed: int) -> Outcome:
    model, count = fitted(method, config, seed), config["images"]
    test = datasets.mnist("test")
    shown = {"mnist": test.X[:count], "kmnist": outside("kmnist", count)}
    arrays = {f"{name}_images": images.astype(np.float32) for name, images in shown.items()}
    found = {}
    for name, images in shown.items():
        predicted = model.predict_distribution(images)
        arrays[f"{name}_mean"] = predicted.probabilities.astype(np.float32)
        draws = model.sample_y(images, config["draws"], random_state=seed)  # [images, classes, draws]
        arrays[f"{name}_std"] = draws.std(axis=2).astype(np.float32)
        found[f"largest_{name}"] = float(np.mean(predicted.probabilities.max(axis=1)))
        found[f"spread_{name}"] = float(np.mean(arrays[f"{name}_std"]))
    return Outcome(found, arrays)


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw one figure per set: images in the first row, then one row of bars per method with their spread."""
    return {name: _page(results, name) for name in ("mnist", "kmnist")}


def _page(results: Results, name: str) -> "Figure":
    shown, count = drawable(results), int(results.config["images"])
    figure, axes = panels(1 + len(shown), count, width=1.6, height=1.15)
    for panel, pixels in zip(axes[0], arrays_of(results, shown[0])[f"{name}_images"], strict=True):
        panel.imshow(pixels.reshape(28, 28), cmap="gray_r")
        panel.grid(visible=False)
        panel.set_axis_off()
    for line, method in zip(axes[1:], shown, strict=True):
        arrays = arrays_of(results, method)
        for panel, mean, std in zip(line, arrays[f"{name}_mean"], arrays[f"{name}_std"], strict=True):
            panel.bar(range(NUM_CLASSES), mean, yerr=std, color=MEAN, ecolor=DRAWS, error_kw={"lw": 1.0})
            panel.set(ylim=(0, 1.05), xticks=range(NUM_CLASSES), yticks=(0, 1))
            panel.grid(visible=False, axis="x")
            panel.tick_params(labelsize="small", labelbottom=method == shown[-1], labelleft=panel is line[0])
        line[0].set_title(method)
    for panel in axes[-1]:
        panel.set_xlabel("class")
    figure.supylabel("probability (lines: one standard deviation of drawn functions)", fontsize="medium")
    return figure


def judge(results: Results) -> list[Verdict]:
    """Compare the largest probability for letters, which are not digits, with that of the baselines."""
    owners: Mapping[str, Whose] = {ONE: "ours", MIXTURE: "ours", PUBLISHED: "as published"}
    return [_less_sure(results, method, whose) for method, whose in owners.items()]


def _less_sure(results: Results, method: str, whose: Whose) -> Verdict:
    own, peers = results.summary(method, "largest_kmnist"), ("BNN-MAP", "BNN-MFVI", "DKL")
    others = {peer: summarised(results.values(peer, "largest_kmnist")) for peer in peers if peer in results.methods}
    return clearly(
        f"{method} is sure of digits and less sure of letters than {', '.join(peers)}.",
        bool(
            results.summary(method, "largest_mnist").mean > 0.8
            and all(own.mean < other.mean for other in others.values())
        ),
        f"largest probability: digits {said(results.summary(method, 'largest_mnist'))}, letters {said(own)}; "
        "letters by " + ", ".join(f"{peer} {said(other)}" for peer, other in others.items()),
        whose=whose,
    )


ITEM = Item(
    title="Appendix: predictive class bars for single images",
    claim=(
        "For digits all methods put their weight on one class; for letters the local model spreads it, and its draws "
        "differ."
    ),
    presets=PRESETS,
    methods=lambda config: list(CLASSIFIERS),
    compute=compute,
    draw=draw,
    judge=judge,
    notes=(
        "The images are the first of the test sets; bars are predictive probabilities, lines one standard deviation of "
        "the probabilities of drawn functions."
    ),
)
