"""Figure 7 and the appendix: networks trained on digits, and their entropy on images that are not digits."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from metaprior import metrics
from metaprior.plots.style import COLOURS, colour
from metaprior.predictive import Predictive
from metaprior_reproduction import datasets
from metaprior_reproduction.parts.figures import arrays_of, drawable, legend_below, panels
from metaprior_reproduction.parts.images import CLASSIFIERS, LAPLACE, MIXTURE, ONE, OUTSIDE, PUBLISHED, fitted, outside
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict, Whose
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
    "omniglot": "Omniglot",
    "uniform": "uniform noise",
    "gaussian": "Gaussian noise",
}
#: The sets of the paper, on which claims are made, and those of them that are images.
SETS = ("notmnist", "fashion", "kmnist", "uniform", "gaussian")
IMAGES = ("fashion", "notmnist", "kmnist")
#: What one network of the paper's configuration should reach.
LEAST_ACCURACY, LEAST_AUROC, MOST_NLL = 0.975, 0.95, 0.08
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
        "n_members": 5,
        **SETTINGS,
        "integrated": {"max_iter": 20000, "learning_rate_init": 0.01, "n_predict_draws": 128},
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
        "integrated": {"n_predict_draws": 16},
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
        "ece": metrics.expected_calibration_error(predicted.probabilities, y),
        "entropy_mnist": float(np.mean(predicted.entropy)),
    }
    arrays = {"cdf_mnist": _distribution(predicted.entropy)}
    for name in OUTSIDE:
        answer = model.predict_distribution(outside(name, config["test_rows"]))
        found |= _detected(name, predicted, answer)
        arrays[f"cdf_{name}"] = _distribution(answer.entropy)
    return Outcome(found, arrays)


def _detected(name: str, inside: Predictive, answer: Predictive) -> dict[str, float]:
    """Return how well the entropy, and the mutual information of a posterior, tell a set from the test digits."""
    found = {
        f"auroc_{name}": metrics.auroc(inside.entropy, answer.entropy),
        f"entropy_{name}": float(np.mean(answer.entropy)),
    }
    if inside.num_draws > 1:  # a point has no mutual information
        found[f"auroc_mi_{name}"] = metrics.auroc(inside.mutual_information, answer.mutual_information)
    return found


def _distribution(entropy: np.ndarray) -> np.ndarray:
    """Return the fraction of images whose entropy is at most each level, from 0 to log 10."""
    levels = np.linspace(0, np.log(10), NUM_LEVELS)
    return np.asarray(np.searchsorted(np.sort(entropy), levels, side="right") / len(entropy), np.float32)


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw the distribution functions of the entropy: one panel per set, one line per method (its first seed)."""
    figure, axes = panels(2, 4, sharex=True, sharey=True)
    levels = np.linspace(0, np.log(10), NUM_LEVELS)
    axes[-1, -1].set_axis_off()
    for panel, (name, title) in zip(axes.ravel(), TITLES.items(), strict=False):
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
    """Hold one network to its bars, and compare it, the mixture and the paper's own scheme with the baselines."""
    return [
        *_reached(results),
        _detects(results, ONE, ("BNN-MFVI", LAPLACE), "ours"),
        _detects(results, MIXTURE, ("BNN-MFVI", "BNN-MAP", "DKL", "Ensemble", LAPLACE), "ours"),
        _detects(results, PUBLISHED, ("BNN-MFVI", "BNN-MAP", "DKL"), "as published"),
        _accurate(results, ONE, "BNN-MFVI", "ours"),
        _accurate(results, MIXTURE, "Ensemble", "ours"),
        _accurate(results, PUBLISHED, "BNN-MFVI", "as published"),
    ]


def _reached(results: Results) -> list[Verdict]:
    accuracy, nll = (results.summary(ONE, name) for name in ("accuracy", "nll"))
    aurocs = {name: results.summary(ONE, f"auroc_{name}") for name in IMAGES}
    return [
        clearly(
            f"{ONE}, one network: an accuracy of {LEAST_ACCURACY} on digits at least.",
            accuracy.mean >= LEAST_ACCURACY,
            said(accuracy, 4),
            whose="ours",
        ),
        clearly(
            f"{ONE}, one network: an AUROC of {LEAST_AUROC} on Fashion-MNIST, notMNIST and KMNIST at least.",
            all(found.mean >= LEAST_AUROC for found in aurocs.values()),
            ", ".join(f"{TITLES[name]} {said(found, 4)}" for name, found in aurocs.items()),
            whose="ours",
        ),
        clearly(
            f"{ONE}, one network: an NLL of {MOST_NLL} on digits at most.",
            nll.mean <= MOST_NLL,
            said(nll, 4),
            whose="ours",
        ),
    ]


def _detects(results: Results, method: str, peers: Sequence[str], whose: Whose) -> Verdict:
    known = [peer for peer in peers if peer in results.methods]
    gaps = {name: [paired(results, method, peer, f"auroc_{name}") for peer in known] for name in SETS}
    won = [name for name in SETS if all(gap.mean > 0 for gap in gaps[name])]
    surely = [name for name in SETS if all(is_above(gap) for gap in gaps[name])]
    numbers = ", ".join(f"{TITLES[name]} {said(results.summary(method, f'auroc_{name}'), 4)}" for name in SETS)
    return clearly(
        f"The entropy of {method} separates images that are no digits from digits better than that of "
        f"{', '.join(peers)}, on four of the five sets at least.",
        len(won) >= 4,
        f"above all of them on {len(won)} of 5 ({', '.join(won) or 'none'}), by two standard errors on {len(surely)} "
        f"({', '.join(surely) or 'none'}); AUROC: {numbers}",
        whose=whose,
    )


def _accurate(results: Results, method: str, peer: str, whose: Whose) -> Verdict:
    gap = paired(results, method, peer, "accuracy")
    return clearly(
        f"{method} is as accurate on digits as {peer}, within one standard error or above.",
        bool(gap.mean + margin(gap) / 2 >= 0),
        f"accuracy {said(results.summary(method, 'accuracy'), 4)} against {said(results.summary(peer, 'accuracy'), 4)}",
        whose=whose,
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
    notes=(
        "One network with a GP on its last layer, the mixture of five of them, and the paper's own scheme (as "
        "published), in which every weight is drawn. The five sets are those of the paper. Omniglot is shown beside "
        "them: the half of it called small2. The step size of the integrated networks was chosen with the other half "
        "and with 2,000 training digits. The entropy is the detector; auroc_mi is the AUROC of the mutual information "
        "of class and function, which a network of point weights does not have. Networks with an integrated output "
        "layer train until the bound is flat, at most 20,000 steps, and predict by 16 draws of the first layer."
    ),
)
