"""Draws of a posterior as ArviZ knows them: named groups of arrays with the axes chain, draw, and their own.

A drawn function stands for the posterior, because the weights of a network mean little on their own. What the sampler
of a small network has seen (`HMCRegressor`) keeps its chains and, if asked for, every number of the model.
"""

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_is_fitted

from metaprior.compilation import as_float64, in_float64
from metaprior.estimators.base import Classifier, Estimator, Regressor
from metaprior.estimators.checks import expect_whole
from metaprior.estimators.method import NetworkMethod
from metaprior.estimators.network_functions import is_network
from metaprior.likelihoods import Gaussian
from metaprior.predictive.draws import FunctionDraws

if importlib.util.find_spec("arviz") is None and importlib.util.find_spec("arviz_base") is None:
    raise ModuleNotFoundError("No module named 'arviz'", name="arviz")

#: The version from which on ArviZ takes one nested dictionary and returns xarray's DataTree.
NESTED_FROM = 1


def to_arviz(
    estimator: Any, X: Any, y: Any = None, *, num_draws: int = 400, random_state: int = 0, parameters: bool = False
) -> Any:
    """Return draws of a fitted posterior at given rows as ArviZ's InferenceData (DataTree from ArviZ 1.0 on).

    The groups are `posterior` (`mean`, the mean of y under every drawn function, or `probabilities`; `noise`, its
    standard deviation, if it is Gaussian), `posterior_predictive` (`y`, noise and all) and `constant_data` (`X`); with
    y also `observed_data` and `log_likelihood`, so that `arviz.loo` works if these are the rows of the fit. What NUTS
    has sampled has its chains, and `sample_stats` with the log density `lp`; other posteriors have one chain.

    Parameters
    ----------
    estimator : regressor or classifier
        A fitted estimator of this library that is a network: all are, but the exact GP.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        The observed targets.
    num_draws : int, default=400
        How many functions are drawn. What NUTS has sampled has its own number (`n_predict_draws` of the estimator).
    random_state : int, default=0
        Decides the functions and the draws of y.
    parameters : bool, default=False
        Whether `posterior` also has every number that the chains of NUTS have sampled, under its name in the model.

    Returns
    -------
    InferenceData or DataTree
    """
    expect_whole("num_draws", num_draws, 1)
    if not is_network(estimator):
        name = type(estimator).__name__
        raise TypeError(f"estimator: expected an estimator of this library that is a network; got {name}.")
    check_is_fitted(estimator)
    chains = _Chains.of(estimator)
    if parameters and not chains.are_sampled:
        name = type(estimator).__name__
        raise ValueError(f"parameters: expected a posterior that NUTS has sampled; got a {name}, which has no states.")
    draws = _drawn(estimator, X, num_draws, random_state, chains)
    groups = _groups_of_draws(estimator, draws, X, random_state)
    if y is not None:
        groups |= _groups_of_targets(estimator, draws, y)
    if parameters:
        groups["posterior"] |= _parameters(estimator.model_)
    by_chain = {name: chains.split(group) for name, group in groups.items() if name not in ("observed_data", "X")}
    by_chain |= chains.sample_stats(estimator)
    data = {"constant_data": groups["X"]} | ({} if y is None else {"observed_data": groups["observed_data"]})
    return _from_dict(by_chain | data, *_names_of_axes(estimator, groups["X"]["X"]))


class _Chains:
    """Which draws belong to which chain: [chains, draws] numbers of states."""

    def __init__(self, of_chain: np.ndarray | None) -> None:
        self.of_chain = of_chain

    @classmethod
    def of(cls, estimator: Any) -> "_Chains":
        """Return the chains of an estimator that was sampled; others have one chain."""
        history = vars(estimator).get("log_joint_history_")
        if history is None:
            return cls(None)
        num_states = len(jax.tree.leaves(estimator.model_)[0])
        chain = _kept(history, num_states) // history.shape[1]
        fewest = int(np.bincount(chain, minlength=len(history)).min())
        return cls(np.stack([np.flatnonzero(chain == number)[:fewest] for number in range(len(history))]))

    @property
    def are_sampled(self) -> bool:
        """Whether a sampler has run."""
        return self.of_chain is not None

    def split(self, group: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return arrays [draws, ...] as [chains, draws, ...]."""
        if self.of_chain is None:
            return {name: values[None] for name, values in group.items()}
        return {name: values[self.of_chain] for name, values in group.items()}

    def sample_stats(self, estimator: Any) -> dict[str, dict[str, np.ndarray]]:
        """Return the group of what the sampler says of every state."""
        if self.of_chain is None:
            return {}
        history = estimator.log_joint_history_
        kept = _kept(history, len(jax.tree.leaves(estimator.model_)[0]))
        return {"sample_stats": {"lp": history.ravel()[kept][self.of_chain]}}


def _kept(history: np.ndarray, num_states: int) -> np.ndarray:
    """Return the numbers of the states that the estimator has kept, evenly spaced over all chains."""
    return np.linspace(0, history.size - 1, num_states).round().astype(int)


def _drawn(estimator: Estimator, X: Any, num_draws: int, seed: int, chains: _Chains) -> FunctionDraws:
    """Return the functions: the sampler's own states in their order, or draws of a posterior."""
    method, x_unit = estimator._method(), estimator._standardised(X)
    assert isinstance(method, NetworkMethod)
    if chains.are_sampled:
        return method.function_draws(estimator, x_unit).coherent()
    return method.joint_draws(estimator, x_unit, num_draws, np.array([seed, 3], np.uint32))


def _groups_of_draws(estimator: Estimator, draws: FunctionDraws, X: Any, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Return the groups that need no targets, [draws, ...]."""
    predicted = estimator._fitted_targets().predictive(draws)
    name = "probabilities" if isinstance(estimator, Classifier) else "mean"
    posterior = {name: predicted.draws()}
    likelihood = draws.likelihood
    if isinstance(likelihood, Gaussian) and isinstance(estimator, Regressor):
        noise = np.exp(np.asarray(likelihood.log_noise, np.float64)) * estimator.y_scale_
        noise = np.broadcast_to(noise.reshape(noise.shape[0], -1), (draws.num_draws, len(estimator.y_scale_)))
        posterior["noise"] = noise[:, 0] if _is_flat(estimator) else noise
    y = predicted.sample(seed)
    if isinstance(estimator, Classifier):
        y = y.astype(int)
    rows = {"X": np.asarray(X, np.float64)}
    return {"posterior": posterior, "posterior_predictive": {"y": y}, "X": rows}


def _groups_of_targets(estimator: Estimator, draws: FunctionDraws, y: Any) -> dict[str, dict[str, np.ndarray]]:
    """Return the targets, classes as their numbers, and their log density under every draw, [draws, rows]."""
    targets = estimator._fitted_targets()
    if isinstance(estimator, Classifier):
        values = np.searchsorted(estimator.classes_, np.asarray(y))
        if not np.array_equal(estimator.classes_[np.minimum(values, len(estimator.classes_) - 1)], np.asarray(y)):
            raise ValueError(f"y: expected the classes {estimator.classes_.tolist()}; got {np.unique(y).tolist()}.")
        unit, volume = values.astype(np.float64)[:, None], 0.0
    else:
        values = np.asarray(y, np.float64)
        unit, volume = targets.standardised(values), float(np.sum(np.log(vars(estimator)["y_scale_"])))
    if len(values) != len(draws.x):
        raise ValueError(f"y: expected {len(draws.x)} targets, one per row of X; got {len(values)}.")
    log_likelihood = _log_densities(draws, unit) - volume
    name = "y" if _is_flat(estimator) else "all_targets"
    return {"observed_data": {"y": values}, "log_likelihood": {name: log_likelihood}}


def _log_densities(draws: FunctionDraws, y: np.ndarray) -> np.ndarray:
    """Return log p(y | f) of every function at standardised targets, of all outputs together, [draws, rows]."""
    parts = []
    for rows, f in draws.chunks():
        with in_float64():
            wide = jnp.broadcast_to(jnp.asarray(y[rows]), (*f.shape[:2], y.shape[1]))
            parts.append(np.asarray(as_float64(draws.likelihood).log_prob(jnp.asarray(f), wide)))
    return np.concatenate(parts, axis=1)


def _parameters(stacked: Any) -> dict[str, np.ndarray]:
    """Return every number of the model that differs between states, by its path in the model."""
    found = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(stacked):
        values = np.asarray(leaf)
        if np.issubdtype(values.dtype, np.floating) and np.any(values != values[:1]):
            found[jax.tree_util.keystr(path, simple=True, separator=".").strip(".")] = values
    return found


def _is_flat(estimator: Any) -> bool:
    return isinstance(estimator, Classifier) or bool(estimator._flat)


def _names_of_axes(estimator: Any, X: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the names of the axes of every array, and the coordinates along them."""
    num_rows, num_columns = X.shape
    targets = [] if _is_flat(estimator) else ["target"]
    dims = {"X": ["row", "column"], "y": ["row", *targets], "mean": ["row", *targets], "noise": targets}
    dims |= {"probabilities": ["row", "class"], "all_targets": ["row"]}
    names = vars(estimator).get("feature_names_in_", np.arange(num_columns))
    coords = {"row": np.arange(num_rows), "column": np.asarray(names)}
    if isinstance(estimator, Classifier):
        coords["class"] = estimator.classes_
    elif targets:
        coords["target"] = np.arange(len(estimator.y_scale_))
    return dims, coords


def _from_dict(groups: dict[str, Any], dims: dict[str, Any], coords: dict[str, Any]) -> Any:
    """Return the groups in the form of the ArviZ that is installed."""
    library, is_nested = _library()
    if is_nested:
        return library.from_dict(groups, dims=_by_group(groups, dims), coords=coords)
    return library.from_dict(**groups, dims=dims, coords=coords)


def _by_group(groups: Mapping[str, Any], dims: dict[str, Any]) -> dict[str, Any]:
    """Return the names of the axes of those arrays that there are."""
    return {name: dims[name] for group in groups.values() for name in group if name in dims}


def _library() -> tuple[Any, bool]:
    """Return ArviZ, or its base, and whether it takes one nested dictionary."""
    if importlib.util.find_spec("arviz") is None:
        return importlib.import_module("arviz_base"), True
    library = importlib.import_module("arviz")
    return library, int(library.__version__.split(".")[0]) >= NESTED_FROM
