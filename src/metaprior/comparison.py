"""Is this prior worth it on my data? Compare several estimators on the same folds in one table of scores.

Every estimator is cloned and fitted to the training rows of every fold. Its predictive distribution at the test rows is
scored (`metaprior.metrics`). The table has the means over folds with their standard errors.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable

from metaprior.estimators.progress import counting_bar
from metaprior.extras import imported
from metaprior.metrics import scores
from metaprior.parallel import run_jobs
from metaprior.predictive.from_sklearn import DistributionPredictor, value_predictor_of
from metaprior.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

#: The most characters of a parameter's value that an estimator's name shows.
LONGEST_VALUE = 40

Splits = list[tuple[np.ndarray, np.ndarray]]


def compare(
    estimators: Sequence[Any] | Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    random_state: int | None = None,
    error_score: Any = "raise",
    n_jobs: int | None = None,
    verbose: bool = True,
) -> "pd.DataFrame":
    """Fit estimators to the same folds of the data and score their predictive distributions.

    Parameters
    ----------
    estimators : list of estimators or dict from name to estimator
        Either regressors or classifiers. They can be estimators of this library (anything with `predict_distribution`),
        regressors with `predict(X, return_std=True)`, which is read as a Gaussian, classifiers with `predict_proba`,
        and pipelines and searches of these. Any other regressor has an `rmse`, and NaN in the scores that depend on how
        sure it is. They are cloned and never changed. The estimators of a list are named by their class, and by the
        parameters in which those of one class differ.
    X : array-like or data frame of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    cv : int, splitter or iterable of (train, test), default=5
        A number of folds (stratified for classifiers), a scikit-learn splitter, or the folds themselves.
    random_state : int, default=None
        Shuffle the rows into `cv` folds with this seed. None does not shuffle: folds are blocks of neighbouring rows.
    error_score : "raise" or nan, default="raise"
        What to do if an estimator fails in a fold: raise an error, or warn and record NaN.
    n_jobs : int, default=None
        Number of fits at a time, each in its own process with one thread; -1 means the number of cores. None means one
        fit at a time with all cores. Inside `joblib.parallel_config(backend="dask")` fits run on the cluster.
    verbose : bool, default=True
        Show a progress bar on stderr.

    Returns
    -------
    pandas.DataFrame
        One row per estimator, best `nll` first. The columns are (score, "mean") and (score, "se"), the standard error
        over folds (NaN for one fold). The scores are those of `metaprior.metrics.scores`, `fit_seconds` and
        `predict_seconds`. `attrs["folds"]` is a list with a dict of all scores for every estimator and fold.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> import metaprior
    >>> X = np.random.default_rng(0).uniform(-2, 2, (60, 1))
    >>> models = [metaprior.MetaGPRegressor(input_kernel="rbf", random_state=0), GaussianProcessRegressor(alpha=0.01)]
    >>> table = metaprior.compare(models, X, np.sin(3 * X[:, 0]), random_state=0)
    """
    pandas = imported("pandas", part="compare", extra="compare")
    named = _named(estimators)
    predictors = {name: value_predictor_of(name, estimator) for name, estimator in named.items()}
    classes = _are_classifiers(named)
    _check_error_score(error_score)
    X, y = indexable(*(np.asarray(data) if isinstance(data, (list, tuple)) else data for data in (X, y)))
    splits = _splits(X, y, cv, random_state, classes)
    places = [(name, number) for name in named for number in range(1, len(splits) + 1)]
    jobs = [
        (
            f"{name}, fold {number} of {len(splits)}",
            error_score,
            clone(named[name]),
            predictors[name],
            X,
            y,
            splits[number - 1],
        )
        for name, number in places
    ]
    found: dict[int, dict[str, float]] = {}
    with counting_bar(verbose, len(jobs)) as advance:
        for index, scored in run_jobs(_tried, jobs, n_jobs):
            found[index] = scored
            advance(jobs[index][0])
    folds = [{"estimator": name, "fold": number, **found[i]} for i, (name, number) in enumerate(places)]
    return _table(pandas, folds)


# --- what is compared -------------------------------------------------------------


def _check_error_score(error_score: Any) -> None:
    is_nan = isinstance(error_score, float) and np.isnan(error_score)
    if not (is_nan or (isinstance(error_score, str) and error_score == "raise")):
        raise ValueError(f"error_score: expected 'raise' or nan; got {error_score!r}.")


def _are_classifiers(named: dict[str, Any]) -> bool:
    """Return whether the estimators are classifiers, and raise an error if only some are."""
    classifiers = [name for name, estimator in named.items() if is_classifier(estimator)]
    if classifiers and len(classifiers) < len(named):
        others = [name for name in named if name not in classifiers]
        raise ValueError(
            f"estimators: expected classifiers or regressors alone; {classifiers} are classifiers, {others} are not."
        )
    return bool(classifiers)


def _named(estimators: Any) -> dict[str, Any]:
    """Return the estimators by name."""
    if not isinstance(estimators, (Mapping, list, tuple)) or not estimators:
        raise ValueError(f"estimators: expected a list of estimators or a dict of them by name; got {estimators!r}.")
    if isinstance(estimators, Mapping):
        return {str(name): estimator for name, estimator in estimators.items()}
    short = [_short_name(estimator) for estimator in estimators]
    named: dict[str, Any] = {}
    for own, estimator in zip(short, estimators, strict=True):
        alike = [other for name, other in zip(short, estimators, strict=True) if name == own]
        name = own + _differing(estimator, alike)
        number = sum(taken == name or taken.startswith(f"{name} #") for taken in named) + 1
        named[name if number == 1 else f"{name} #{number}"] = estimator
    return named


def _short_name(estimator: Any) -> str:
    """Return the name of the class, or of a pipeline the names of its steps."""
    if isinstance(estimator, Pipeline):
        return " > ".join(_short_name(step) for _, step in estimator.steps)
    return type(estimator).__name__


def _differing(estimator: Any, alike: list[Any]) -> str:
    """Return the parameters in which estimators of one class differ, in brackets, or nothing if there are none."""
    own, *_ = every = [_parameters(e) for e in (estimator, *alike)]
    differing = [key for key in own if len({other.get(key) for other in every}) > 1]
    return f"({', '.join(f'{key}={_cut(own[key])}' for key in differing)})" if differing else ""


def _parameters(estimator: Any) -> dict[str, str]:
    """Return the parameters as text, or of a pipeline those of its steps."""
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        return {}
    found = estimator.get_params(deep=isinstance(estimator, Pipeline))
    if isinstance(estimator, Pipeline):
        found = {key: value for key, value in found.items() if "__" in key}
    return {key: " ".join(getattr(value, "__name__", repr(value)).split()) for key, value in found.items()}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


# --- folds ------------------------------------------------------------------------


def _splits(X: Any, y: Any, cv: Any, random_state: int | None, classes: bool) -> Splits:
    """Return the training rows and the test rows of every fold."""
    splitter = check_cv(cv, np.ravel(y) if classes else np.asarray(y), classifier=classes)
    if random_state is not None:
        if not isinstance(cv, (int, np.integer)):
            raise ValueError(f"random_state: expected None unless cv is a whole number; cv={cv!r} has its own order.")
        splitter = type(splitter)(int(cv), shuffle=True, random_state=random_state)
    splits = [(np.arange(len(y))[train], np.arange(len(y))[test]) for train, test in splitter.split(X, y)]
    if not splits:
        raise ValueError("cv: expected at least one pair (rows to train on, rows to test on); got none.")
    if classes:
        _check_classes(np.ravel(y), splits)
    return splits


def _check_classes(labels: np.ndarray, splits: Splits) -> None:
    for number, (train, test) in enumerate(splits, 1):
        unseen = set(labels[test].tolist()) - set(labels[train].tolist())
        if unseen:
            raise ValueError(
                f"cv: fold {number} tests classes that its training rows lack, {sorted(unseen)}; use fewer folds, or "
                "leave rare classes out."
            )


def _tried(place: str, error_score: Any, *job: Any) -> dict[str, float]:
    """Return the scores of a fold, or an empty dict if it fails and that is allowed."""
    try:
        return _fold(*job)
    except Exception as error:
        if isinstance(error_score, str):
            raise RuntimeError(f"{place}: {type(error).__name__}: {error}") from error
        warn_user(
            f"{place}: scores are NaN after {type(error).__name__}: {error} (error_score='raise' would raise it).",
            FitFailedWarning,
        )
        return {}


def _fold(
    model: Any, predict: DistributionPredictor, X: Any, y: Any, split: tuple[np.ndarray, np.ndarray]
) -> dict[str, float]:
    """Fit an estimator to a fold and score it."""
    train, test = split
    started = time.perf_counter()
    model.fit(_rows(X, train), _rows(y, train))
    fitted = time.perf_counter()
    predictive = predict(model, _rows(X, test))
    _ = predictive.mean  # distributions are lazy: compute it within the timed part
    predicted = time.perf_counter()
    return {
        **scores(predictive, np.asarray(_rows(y, test))),
        "fit_seconds": fitted - started,
        "predict_seconds": predicted - fitted,
    }


def _rows(data: Any, rows: np.ndarray) -> Any:
    return data.iloc[rows] if hasattr(data, "iloc") else data[rows]


# --- the table --------------------------------------------------------------------


def _table(pandas: Any, folds: list[dict[str, Any]]) -> "pd.DataFrame":
    """Return the means and standard errors over folds, best estimator first."""
    score_names = list(dict.fromkeys(key for fold in folds for key in fold if key not in ("estimator", "fold")))
    if not score_names:
        raise RuntimeError("compare: every estimator failed in every fold; the warnings say why.")
    folds = [dict.fromkeys(["estimator", "fold", *score_names], np.nan) | fold for fold in folds]
    names = list(dict.fromkeys(fold["estimator"] for fold in folds))
    rows = [_row([[fold[s] for s in score_names] for fold in folds if fold["estimator"] == name]) for name in names]
    columns = pandas.MultiIndex.from_product([score_names, ["mean", "se"]], names=["score", None])
    table = pandas.DataFrame(rows, index=pandas.Index(names, name="estimator"), columns=columns)
    table = table.sort_values(("nll", "mean"), kind="stable")
    table.attrs["folds"] = folds
    return table


def _row(values: Iterable[Iterable[float]]) -> np.ndarray:
    """Return the mean and the standard error of every score in turn, from [folds, scores]."""
    array = np.array(values, np.float64)
    with np.errstate(invalid="ignore"):
        mean = np.mean(array, axis=0)
        spread = np.std(array, axis=0, ddof=1) if len(array) > 1 else np.full(mean.shape, np.nan)
    return np.stack([mean, spread / np.sqrt(len(array))], axis=1).ravel()
