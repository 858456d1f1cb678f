"""The methods that `metaprior compare` compares: a name, what it is, and how its estimator is made."""

import importlib
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

from metaprior.cli.result import UsageError

#: The name of this library's own method, whose estimator the options describe.
OWN = "metaprior"
#: Parameters of the options that every network takes, so that the same network is compared.
SHARED = ("hidden_layer_sizes", "activation", "max_iter")


class Contender(NamedTuple):
    """A method. `classifier` is empty if it has none for classes, `package` what it needs beside this library."""

    what: str
    regressor: str
    classifier: str
    usual: bool = True
    package: str | None = None
    settings: Mapping[str, Any] = {}
    most_rows: float = float("inf")

    def path(self, task: str) -> str:
        """Return where the class for a task is, as MODULE:CLASS."""
        return self.regressor if task == "regression" else self.classifier

    def is_installed(self) -> bool:
        """Return whether the package that it needs is installed."""
        return self.package is None or find_spec(self.package) is not None


def _of_library(what: str, name: str, *, usual: bool = True, package: str | None = None) -> Contender:
    module = "metaprior.baselines"
    return Contender(what, f"{module}:{name}Regressor", f"{module}:{name}Classifier", usual, package)


CONTENDERS = {
    "exact-gp": Contender(
        "Gaussian process with an RBF kernel (ARD), exact",
        "metaprior.baselines:ExactGPRegressor",
        "",
        most_rows=1000,
    ),
    "ensemble": _of_library("five networks with point weights", "Ensemble"),
    "mfvi": _of_library("Bayesian network with independent Gaussian weights", "MFVI"),
    "laplace": _of_library("network with a linearised Laplace approximation", "Laplace"),
    "boosted-trees": Contender(
        "scikit-learn's HistGradientBoosting; for numbers it has an RMSE only",
        "sklearn.ensemble:HistGradientBoostingRegressor",
        "sklearn.ensemble:HistGradientBoostingClassifier",
    ),
    "linear": Contender(
        "Bayesian ridge regression, or logistic regression",
        "metaprior.cli.other_estimators:scaled_ridge",
        "metaprior.cli.other_estimators:scaled_logistic",
    ),
    "lightgbm": Contender(
        "LightGBM, if it is installed; for numbers it has an RMSE only",
        "lightgbm:LGBMRegressor",
        "lightgbm:LGBMClassifier",
        package="lightgbm",
        settings={"verbose": -1},
    ),
    "xgboost": Contender(
        "XGBoost, if it is installed; for numbers it has an RMSE only",
        "xgboost:XGBRegressor",
        "xgboost:XGBClassifier",
        package="xgboost",
    ),
    "ngboost": Contender(
        "NGBoost, if it is installed",
        "metaprior.cli.other_estimators:NGBoostRegressor",
        "ngboost:NGBClassifier",
        package="ngboost",
        settings={"verbose": False},
    ),
    "dkl": _of_library("deep kernel learning", "DKL", usual=False),
    "map": _of_library("one network with point weights", "MAP", usual=False),
    "metann": _of_library("network whose weights come from another network", "MetaNN", usual=False),
    "hmc": _of_library("Bayesian network sampled by NUTS; slow", "HMC", usual=False, package="numpyro"),
}


class Chosen(NamedTuple):
    """The methods to compare, by name, and a note for each of those that are left out though they are usual."""

    names: list[str]
    notes: list[str]


def chosen_methods(asked: list[str] | None, task: str, num_rows: int) -> Chosen:
    """Return the methods for a number of training rows; raise an error if one that was asked for is not possible."""
    if asked is not None:
        return Chosen([_possible(name, task) for name in asked], [])
    names, notes = [OWN], []
    for name, contender in CONTENDERS.items():
        if not contender.usual or not contender.path(task) or not contender.is_installed():
            continue
        if num_rows > contender.most_rows:
            limit = f"its time grows with the cube of the rows, and {num_rows:,} to fit are more than"
            notes.append(f"{name} is left out: {limit} {contender.most_rows:,}; name it in --methods to have it.")
        else:
            names.append(name)
    return Chosen(names, notes)


def made_contender(name: str, task: str, own: Any) -> Any:
    """Return the estimator of a method; `own` is that of this library, whose seed and network others take."""
    from sklearn.base import clone

    if name == OWN:
        return clone(own)
    contender = CONTENDERS[name]
    module, _, attribute = contender.path(task).partition(":")
    made = getattr(importlib.import_module(module), attribute)(**contender.settings)
    known, given = made.get_params(), own.get_params(deep=False)
    seed = {key: own.random_state for key in known if key.rpartition("__")[2] == "random_state"}
    shared = {key: given[key] for key in SHARED if key in known} if "hidden_layer_sizes" in known else {}
    return made.set_params(**seed, **shared)


def _possible(name: str, task: str) -> str:
    if name == OWN:
        return name
    if name not in CONTENDERS:
        raise UsageError(f"--methods: expected some of {', '.join([OWN, *CONTENDERS])}; got {name!r}")
    contender = CONTENDERS[name]
    if not contender.path(task):
        raise UsageError(f"--methods: {name} predicts numbers and no classes; leave it out")
    if not contender.is_installed():
        raise UsageError(f"--methods: {name} needs the package {contender.package}; pip install {contender.package}")
    return name
