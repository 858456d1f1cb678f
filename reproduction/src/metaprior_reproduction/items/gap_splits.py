"""An item of our own: the regression sets with the middle third of one column held out, one column after the other.

After Foong, Li, Hernandez-Lobato and Turner (2019), 'In-between' uncertainty in Bayesian neural networks. The rows in
the gap are scored one by one, and in blocks of neighbours by their joint density, which rewards a model that knows how
its errors at neighbouring rows are related.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from metaprior.metrics import scores
from metaprior.predictive import Predictive
from metaprior_reproduction.datasets import uci
from metaprior_reproduction.parts.item import Config, Item, Outcome, Results, Verdict
from metaprior_reproduction.parts.published import beside, sources
from metaprior_reproduction.parts.table_models import (
    DEFAULT,
    GP,
    MODELS,
    NGBOOST,
    SPARSE,
    TREES,
    made,
    methods_of,
    outcomes_of,
)
from metaprior_reproduction.parts.table_verdicts import level_in_library, scores_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The sets from the smallest to the largest, with the number of their columns that are not constant.
COLUMNS = {
    "yacht": 6,
    "bostonHousing": 13,
    "energy": 8,
    "concrete": 8,
    "wine-quality-red": 11,
    "kin8nm": 8,
    "power-plant": 4,
    "naval-propulsion-plant": 14,
    "protein-tertiary-structure": 9,
}
#: Of nine sets: on how many the default is to be level with the best of the library.
ENOUGH = 7
METRICS = ("rmse", "nll", "crps", "coverage_95")
PRESETS: dict[str, Config] = {
    "paper": {
        "seeds": max(COLUMNS.values()),
        "models": [model for model in MODELS if model not in (NGBOOST, TREES)],
        "splits": COLUMNS,
        "num_blocks": 50,
        "block_rows": 10,
        "settings": {},
        "steps": {name: 3000 if index < 5 else 5000 for index, name in enumerate(COLUMNS)},
        "own_settings": {},
    },
    "smoke": {
        "seeds": 1,
        "models": [DEFAULT, GP, SPARSE, "Ensemble"],
        "splits": {"yacht": 1},
        "num_blocks": 3,
        "block_rows": 5,
        "settings": {"hidden_layer_sizes": [10], "input_kernel": None},
        "steps": {"yacht": 50},
        "own_settings": {
            DEFAULT: {"max_iter": 50},
            GP: {"max_iter": 5},
            SPARSE: {"n_inducing": 20, "max_iter": 5},
        },
    },
}


class GapSplit(NamedTuple):
    """The numbers of the rows on both sides of a gap, and of those in it."""

    train: np.ndarray
    test: np.ndarray


def compute(config: Config, method: str, seeds: Sequence[int]) -> list[Outcome]:
    """Hold out the middle of the column of every seed; a seed beyond the columns of a set has no metrics."""
    return outcomes_of(_scored, config, method, seeds)


def _scored(config: Config, name: str, model: str, seed: int) -> Outcome:
    X, y = uci(name)
    split = gap_split(X, seed)
    started = time.process_time()
    fitted = made(model, config, name, seed).fit(X[split.train], y[split.train])
    predicted = fitted.predict_distribution(X[split.test])
    found = {metric: value for metric, value in scores(predicted, y[split.test]).items() if metric in METRICS}
    found["cpu_seconds"] = time.process_time() - started
    if MODELS[model].has_joint:
        groups = blocks(X[split.test], config["num_blocks"], config["block_rows"], seed)
        found |= block_scores(predicted, y[split.test], groups)
    return Outcome(found)


def gap_split(X: np.ndarray, number: int) -> GapSplit:
    """Return the rows outside and inside the middle third of a column, which is counted among those that vary.

    Equal values are in the order of the file.
    """
    varying = np.flatnonzero(X.max(axis=0) > X.min(axis=0))
    order = np.argsort(X[:, varying[number]], kind="stable")
    low, high = len(X) // 3, len(X) - len(X) // 3
    return GapSplit(np.sort(np.concatenate([order[:low], order[high:]])), np.sort(order[low:high]))


def blocks(X: np.ndarray, count: int, size: int, seed: int) -> np.ndarray:
    """Return blocks of row numbers, [count, size]: a random row with its nearest rows, in standardised columns."""
    spread = X.std(axis=0)
    scaled = X / np.where(spread > 0, spread, 1)
    centres = np.random.default_rng(seed).permutation(len(X))[:count]
    far = np.sum((scaled[centres, None] - scaled[None]) ** 2, axis=2)
    return np.argsort(far, axis=1, kind="stable")[:, :size]


def block_scores(predicted: Predictive, y: np.ndarray, groups: np.ndarray) -> dict[str, float]:
    """Return minus the log density of a block per row, of its rows together and one by one; the mean over blocks."""
    together = [predicted[rows].joint_log_prob(y[rows]) / len(rows) for rows in groups]
    alone = predicted.log_prob(y)[groups]
    return {"joint_nll": -float(np.mean(together)), "block_nll": -float(np.mean(alone))}


def draw(results: Results) -> "Mapping[str, Figure]":
    """Draw NLL, joint NLL and RMSE in the gaps, one column per set: means and standard errors of all models."""
    return {"gap-splits": scores_figure(results, ("nll", "joint_nll", "rmse"))}


def judge(results: Results) -> list[Verdict]:
    """Count the sets on which the default is level with the best of the library, row by row and in blocks."""
    words = {"nll": "NLL in the gaps", "joint_nll": "joint NLL of blocks of rows in the gaps"}
    return [level_in_library(results, metric, told, ENOUGH) for metric, told in words.items()]


ITEM = Item(
    title="Of our own: gaps in the regression sets",
    claim=(
        "Where the middle third of a column is held out, MetaGPRegressor() as it comes is the best or level with the "
        "best of the library's models on seven of nine sets, in the density of single rows and in the joint density "
        "of blocks of rows."
    ),
    presets=PRESETS,
    methods=methods_of,
    compute=compute,
    draw=draw,
    judge=judge,
    paper=beside("gaps", list(COLUMNS)),
    notes=(
        "A seed is a column; constant columns are left out, and equal values are in the order of the file. Models are "
        "those of uci-regression. joint_nll is minus the log density of a block per row, block_nll the same with the "
        "rows taken one by one; a block is a random row of the gap with its nine nearest, and there are 50 of them. "
        "The joint density is exact for the integrated output layer, the GPs and the ensemble, whose members are five "
        "functions. For the others (DKL, BNN-MFVI, Laplace, the paper's inference) it is the log of the mean over the "
        "drawn functions of a prediction, which is too low: a few functions are rarely close to all ten rows. "
        f"Published numbers, in brackets, are of gap splits of their own: {sources('gaps')}."
    ),
)
