"""Figure 7 and the appendix: networks trained on digits, and their entropy on images that are not digits."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from metaprior import metrics
from metaprior.plots.style import COLOURS, colour
from metaprior_reproduction import datasets
from metaprior_reproduction.parts.figures import arrays_of, drawable, legend_below, panels
from metaprior_reproduction.parts.images import CLASSIFIERS, OURS, OUTSIDE, PAPER, fitted, outside
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.verdicts import clearly, is_above, margin, paired, said

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The points of a distribution function that are kept for the figure.
NUM_LEVELS = 101
TITLES = {
    "mnist": "MNIST test",
    "notmnist": "notMNIST",
    "fashion": "Fashion-MNIST",
    "kmnist": "KMNIST",
    "uniform": "uniform noise",
    "gaussian": "Gaussian noise",
}
SETTINGS: Config = {
    "hidden_layer_sizes": [100],
    "activation": "relu",
    "input_scaling": "joint",
    "batch_size": 256,
    "n_train_draws": 1,
    "n_predict_draws": 32,
    "learning_rate_init": 0.003,
}
PRESETS: dict[str, Config] = {
    "paper": {
        "seeds": 5,
        "train_rows": 60000,
        "test_rows": 10000,
        "max_iter": 5000,
        "members": 5,
        "n_members": 5,
        **SETTINGS,
    },
    "smoke": {
        "seeds": 1,
        "train_rows": 1000,
        "test_rows": 100,
        "max_iter": 30,
        "n_members": 2,
        **SETTINGS,
        "hidden_layer_sizes": [10],
        "n_predict_draws": 4,
    },
}


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Train on digits; score predictions for test digits, and the entropy as a detector of every other set."""
    return [_outcome(config, method, seed) for seed in seeds]


def _outcome(config: Config, method: str, seed: int) -> Outcome:
    model, test = fitted(method, config, seed), datasets.mnist("test")
    X, y = test.X[: config["test_rows"]], test.y[: config["test_rows"]]
    predicted = model.predict_distribution(X)
    found = {
        "accuracy": metrics.accuracy(predicted.probabilities, y),
        "nll": -float(np.mean(predicted.log_prob(y))),
        "entropy_mnist": float(np.mean(predicted.entropy)),
    }
    arrays = {"cdf_mnist": _distribution(predicted.entropy)}
    for name in OUTSIDE:
        entropy = model.predict_distribution(outside(name, config["test_rows"])).entropy
        found[f"auroc_{name}"] = metrics.auroc(predicted.entropy, entropy)
        found[f"entropy_{name}"] = float(np.mean(entropy))
        arrays[f"cdf_{name}"] = _distribution(entropy)
    return Outcome(found, arrays)


def _distribution(entropy: np.ndarray) -> np.ndarray:
    """Return the fraction of images whose entropy is at most each level, from 0 to log 10."""
    levels = np.linspace(0, np.log(10), NUM_LEVELS)
    return np.asarray(np.searchsorted(np.sort(entropy), levels, side="right") / len(entropy), np.float32)


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw the distribution functions of the entropy: one panel per set, one line per method (its first seed)."""
    figure, axes = panels(2, 3, sharex=True, sharey=True)
    levels = np.linspace(0, np.log(10), NUM_LEVELS)
    for panel, (name, title) in zip(axes.ravel(), TITLES.items(), strict=True):
        for number, method in enumerate(drawable(results)):
            style = {"color": colour(number), "ls": "-" if number < len(COLOURS) else "--"}
            panel.plot(levels, arrays_of(results, method)[f"cdf_{name}"], label=method, lw=1.4, **style)
        panel.set_title(title)
    for panel in axes[-1]:
        panel.set_xlabel("predictive entropy (nats)")
    for panel in axes[:, 0]:
        panel.set_ylabel("part of images below")
    legend_below(figure, axes[0, 0])
    return {"entropies": figure}


def judge(results: Results) -> list[Verdict]:
    """Compare both configurations with the baselines, set by set."""
    return [
        _detects(results, PAPER, ("BNN-MFVI", "BNN-MAP", "DKL"), "The paper: its local model"),
        _detects(results, OURS, ("BNN-MFVI", "BNN-MAP", "DKL"), "Our configuration"),
        _accurate(results, PAPER),
        _accurate(results, OURS),
    ]


def _detects(results: Results, method: str, peers: Sequence[str], who: str) -> Verdict:
    known = [peer for peer in peers if peer in results.methods]
    gaps = {name: [paired(results, method, peer, f"auroc_{name}") for peer in known] for name in OUTSIDE}
    won = [name for name in OUTSIDE if all(gap.mean > 0 for gap in gaps[name])]
    surely = [name for name in OUTSIDE if all(is_above(gap) for gap in gaps[name])]
    numbers = ", ".join(f"{TITLES[name]} {said(results.summary(method, f'auroc_{name}'), 4)}" for name in OUTSIDE)
    return clearly(
        f"{who} tells images that are no digits better than {', '.join(peers)} do, on four of the five sets at least.",
        len(won) >= 4,
        f"above all of them on {len(won)} of 5 ({', '.join(won) or 'none'}), by two standard errors on {len(surely)} "
        f"({', '.join(surely) or 'none'}); AUROC: {numbers}",
    )


def _accurate(results: Results, method: str) -> Verdict:
    gap = paired(results, method, "BNN-MFVI", "accuracy")
    return clearly(
        f"{method} is as accurate on digits as BNN-MFVI, within one standard error or above.",
        bool(gap.mean + margin(gap) / 2 >= 0),
        f"accuracy {said(results.summary(method, 'accuracy'), 4)} against "
        f"{said(results.summary('BNN-MFVI', 'accuracy'), 4)}",
    )


ITEM = Item(
    title="Figure 7: entropy inside and outside MNIST",
    claim=(
        "Trained on MNIST, a MetaGP-local last layer is unsure of images that are no digits (notMNIST, Fashion-MNIST, "
        "KMNIST, noise), where MAP, mean-field VI and deep kernel learning are surer, and as accurate on digits."
    ),
    presets=PRESETS,
    methods=lambda config: list(CLASSIFIERS),
    compute=compute,
    draw=draw,
    judge=judge,
)
