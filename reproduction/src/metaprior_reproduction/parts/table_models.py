"""The models that the items on tables compare: ours, the paper's inference, the library's baselines, and trees.

A model is made with its defaults; what differs from them is here, and in the configuration of the item.
"""

import importlib.util
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor

from metaprior import baselines, kernels
from metaprior.estimators import MetaGPRegressor
from metaprior.predictive import Predictive
from metaprior.predictive.from_sklearn import GaussianMarginals
from metaprior_reproduction.parts.item import Config, Outcome, Whose
from metaprior_reproduction.parts.methods import AS_PUBLISHED, configured
from metaprior_reproduction.parts.sparse_gp import SparseGPRegressor

DEFAULT, LARGER, NOISY = "MetaGP (default)", "MetaGP (two layers)", "MetaGP (heteroscedastic)"
PUBLISHED = "MetaGP (as published)"
GP, SPARSE = "Exact GP", "SVGP"
NGBOOST, TREES = "NGBoost", "Boosted trees"
#: The sets on which the noise is let depend on the input.
NOISY_SETS = ("protein-tertiary-structure", "power-plant", "wine-quality-red")


class ExactGPOfManyRows(RegressorMixin, BaseEstimator):
    """An exact GP that learns its hyper-parameters from some rows and is then conditioned on many more.

    Parameters
    ----------
    learn_rows : int, default=2000
        Hyper-parameters maximise the evidence of so many random rows.
    most_rows : int, default=10000
        The GP is conditioned on all rows, but on not more than these.
    max_iter : int, default=100
        The largest number of steps of the search.
    random_state : int, default=0
        Which rows are chosen.

    Attributes
    ----------
    gp_ : ExactGPRegressor
        The GP of all rows.
    """

    def __init__(
        self, learn_rows: int = 2000, most_rows: int = 10_000, max_iter: int = 100, random_state: int = 0
    ) -> None:
        self.learn_rows = learn_rows
        self.most_rows = most_rows
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the hyper-parameters, then condition on all rows."""
        rows = np.random.default_rng(self.random_state).permutation(len(y))
        few, many = rows[: self.learn_rows], rows[: self.most_rows]
        learned = baselines.ExactGPRegressor(
            kernels.RBF(), n_restarts=0, max_iter=self.max_iter, random_state=self.random_state
        ).fit(X[few], y[few])
        self.gp_ = learned
        if len(many) > len(few):
            whole = baselines.ExactGPRegressor(learned.kernel_, noise=learned.noise_, max_iter=0)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*rows are many for an exact GP")
                self.gp_ = whole.fit(X[many], y[many])
        return self

    def predict_distribution(self, X: Any) -> Predictive:
        """Return the predictive distribution of the GP of all rows."""
        return self.gp_.predict_distribution(X)


class NGBoost(RegressorMixin, BaseEstimator):
    """Natural-gradient boosting of Gaussians, from the package ngboost, which is an extra of the reproduction."""

    def __init__(self, n_estimators: int = 500, random_state: int = 0) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the trees."""
        from ngboost import NGBRegressor

        made = NGBRegressor(n_estimators=self.n_estimators, random_state=self.random_state, verbose=False)
        self.trees_ = made.fit(X, y)
        return self

    def predict_distribution(self, X: Any) -> GaussianMarginals:
        """Return the Gaussians that the trees predict."""
        found = self.trees_.pred_dist(X).params
        return GaussianMarginals(found["loc"], found["scale"])


class TableModel(NamedTuple):
    """How a model is made, whose it is, and which of its numbers there are."""

    make: Callable[[], Any]
    whose: Whose
    #: Whether it predicts a distribution, and whether that is a joint one of several rows.
    has_spread: bool = True
    has_joint: bool = False
    #: The package that it needs beside ours.
    package: str = ""


MODELS: Mapping[str, TableModel] = {
    DEFAULT: TableModel(MetaGPRegressor, "ours", has_joint=True),
    LARGER: TableModel(lambda: MetaGPRegressor(hidden_layer_sizes=(50, 50)), "ours", has_joint=True),
    NOISY: TableModel(lambda: MetaGPRegressor(likelihood="heteroscedastic"), "ours", has_joint=True),
    PUBLISHED: TableModel(lambda: MetaGPRegressor(**AS_PUBLISHED), "as published", has_joint=True),
    GP: TableModel(ExactGPOfManyRows, "baseline", has_joint=True),
    SPARSE: TableModel(SparseGPRegressor, "baseline", has_joint=True),
    "DKL": TableModel(lambda: baselines.DKLRegressor(), "baseline", has_joint=True),
    "BNN-MFVI": TableModel(lambda: baselines.MFVIRegressor(noise_hold=0.5), "baseline", has_joint=True),
    "Ensemble": TableModel(lambda: baselines.EnsembleRegressor(), "baseline", has_joint=True),
    "Laplace": TableModel(lambda: baselines.LaplaceRegressor(), "baseline", has_joint=True),
    NGBOOST: TableModel(NGBoost, "baseline", package="ngboost"),
    TREES: TableModel(HistGradientBoostingRegressor, "baseline", has_spread=False),
}
#: What is not a model of the library: it stands beside, and no verdict compares ours with it.
OUTSIDE = (NGBOOST, TREES)


def is_there(model: str) -> bool:
    """Return whether the package that a model needs is installed."""
    package = MODELS[model].package
    return not package or importlib.util.find_spec(package) is not None


def models_of(config: Config, name: str) -> list[str]:
    """Return the models of a set: those of the configuration that can run and are meant for it."""
    return [model for model in config["models"] if is_there(model) and (model != NOISY or name in NOISY_SETS)]


def methods_of(config: Config) -> list[str]:
    """Return the methods of an item: every model for every set, set by set."""
    return [f"{name} {model}" for name in config["splits"] for model in models_of(config, name)]


def outcomes_of(
    scored: Callable[[Config, str, str, int], Outcome], config: Config, method: str, seeds: Sequence[int]
) -> list[Outcome]:
    """Score a model on the split of every seed; a seed beyond the splits of a set has no metrics."""
    name, model = method.split(" ", 1)
    return [scored(config, name, model, seed) if seed < config["splits"][name] else Outcome({}) for seed in seeds]


def left_out(config: Config) -> str:
    """Return a sentence on the models that are left out because their package is not installed; usually empty."""
    absent = [model for model in config["models"] if not is_there(model)]
    return f"not installed, and left out: {', '.join(absent)}" if absent else ""


def made(model: str, config: Config, name: str, seed: int) -> Any:
    """Return a model for a set, with the settings of the configuration that are meant for it."""
    own = {**config["settings"], **config["own_settings"].get(model, {})}
    steps = config["steps"].get(name)
    if MODELS[model].whose != "ours" and model not in (GP, SPARSE, *OUTSIDE) and steps:
        own = {**own, "max_iter": steps}
    return configured(MODELS[model].make(), own, seed)
