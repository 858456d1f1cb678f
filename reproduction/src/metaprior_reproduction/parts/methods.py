"""The estimators that items compare, under the paper's names, and what tables and figures need from a fitted one."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from metaprior import baselines, kernels, metrics
from metaprior.datasets import Split
from metaprior.estimators import MetaGPClassifier, MetaGPRegressor, fit_together
from metaprior.kernels import Kernel
from metaprior_reproduction.parts.item import Whose

#: The paper's own inference: all weights are drawn, independently given the latents and the inducing values.
AS_PUBLISHED: Mapping[str, Any] = {"output_layer": "drawn", "conditional": "fitc"}


def published(method: str) -> str:
    """Return the name of a method of ours with the paper's own inference."""
    return f"{method} (as published)"


#: The input kernels of ours.
_KERNELS: Mapping[str, Callable[[], Kernel | None]] = {
    "MetaGP": lambda: None,
    "MetaGP-Local[RBF]": lambda: kernels.RBF(),
    "MetaGP-Local[Periodic]": lambda: kernels.Periodic(),
}


def _ours(make: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
    """Return ours and the same with the paper's own inference, by name."""

    def made(kernel: Callable[[], Kernel | None], **inference: Any) -> Callable[[], Any]:
        return lambda: make(input_kernel=kernel(), **inference)

    default = {name: made(kernel) for name, kernel in _KERNELS.items()}
    return {**default, **{published(name): made(kernel, **AS_PUBLISHED) for name, kernel in _KERNELS.items()}}


#: Estimators with default parameters; a `Periodic` kernel finds its period in the data.
REGRESSORS: Mapping[str, Callable[[], Any]] = {
    "BNN-MAP": lambda: baselines.MAPRegressor(),
    "BNN-MFVI": lambda: baselines.MFVIRegressor(),
    "BNN-HMC": lambda: baselines.HMCRegressor(),
    "Exact GP-RBF": lambda: baselines.ExactGPRegressor(kernels.RBF()),
    "Exact GP-Periodic": lambda: baselines.ExactGPRegressor(kernels.Periodic()),
    "DKL": lambda: baselines.DKLRegressor(),
    "MetaNN": lambda: baselines.MetaNNRegressor(),
    **_ours(MetaGPRegressor),
    "Ensemble": lambda: baselines.EnsembleRegressor(),
    "Laplace": lambda: baselines.LaplaceRegressor(),
}
CLASSIFIERS: Mapping[str, Callable[[], Any]] = {
    "BNN-MAP": lambda: baselines.MAPClassifier(),
    "BNN-MFVI": lambda: baselines.MFVIClassifier(),
    "BNN-HMC": lambda: baselines.HMCClassifier(),
    "DKL": lambda: baselines.DKLClassifier(),
    "MetaNN": lambda: baselines.MetaNNClassifier(),
    **_ours(MetaGPClassifier),
    "Ensemble": lambda: baselines.EnsembleClassifier(),
    "Laplace": lambda: baselines.LaplaceClassifier(),
}
#: Whose method each of these names is.
WHOSE: Mapping[str, Whose] = {
    **dict.fromkeys(_KERNELS, "ours"),
    **{published(name): "as published" for name in _KERNELS},
    "BNN-MAP": "baseline",
    "BNN-MFVI": "baseline",
    "BNN-HMC": "baseline",
    "Exact GP-RBF": "baseline",
    "Exact GP-Periodic": "baseline",
    "DKL": "baseline",
    "MetaNN": "baseline",
    "Ensemble": "baseline",
    "Laplace": "baseline",
}
#: Methods whose fit is not a single training run, so that several fits cannot be trained side by side.
ONE_BY_ONE = (
    baselines.HMCRegressor,
    baselines.HMCClassifier,
    baselines.ExactGPRegressor,
    baselines.EnsembleRegressor,
    baselines.EnsembleClassifier,
    baselines.LaplaceRegressor,
    baselines.LaplaceClassifier,
)


def configured(estimator: Any, settings: Mapping[str, Any], random_state: int) -> Any:
    """Return the estimator with its seed and those settings that are among its parameters; others are ignored."""
    known = estimator.get_params(deep=False)
    own = {name: value for name, value in settings.items() if name in known}
    return estimator.set_params(**own, random_state=int(random_state))


def fitted(
    make: Callable[[], Any], settings: Mapping[str, Any], seeds: Sequence[int], data: Sequence[Split]
) -> list[Any]:
    """Return one fitted estimator per seed, trained side by side in one program where the method allows it."""
    models = [configured(make(), settings, seed) for seed in seeds]
    if len(models) > 1 and not isinstance(models[0], ONE_BY_ONE):
        fit_together(models, [(part.X, part.y) for part in data])
    else:
        for model, part in zip(models, data, strict=True):
            model.fit(part.X, part.y)
    return models


def error_and_nll(model: Any, part: Split, prefix: str = "") -> dict[str, float]:
    """Return RMSE and NLL of a regression on known targets, as `<prefix>rmse` and `<prefix>nll`."""
    predicted = model.predict_distribution(part.X)
    return {
        f"{prefix}rmse": metrics.rmse(predicted.mean, part.y),
        f"{prefix}nll": -float(np.mean(predicted.log_prob(part.y))),
    }


def curve(model: Any, x: np.ndarray, train: Split, num_draws: int = 6) -> dict[str, np.ndarray]:
    """Return what a figure of a one-dimensional regression shows: mean, spread, function draws, training points."""
    predicted = model.predict_distribution(x[:, None])
    return as_float32(
        {
            "x": x,
            "mean": predicted.mean,
            "std": predicted.std,
            "draws": predicted.draws()[:num_draws],
            "train_x": train.X[:, 0],
            "train_y": train.y,
        }
    )


def square(limit: float, size: int) -> np.ndarray:
    """Return the points of a square grid on [-limit, limit), [size^2, 2], the first coordinate changing fastest."""
    side = np.linspace(-limit, limit, size, endpoint=False)
    first, second = np.meshgrid(side, side)
    return np.column_stack([first.ravel(), second.ravel()])


def class_map(model: Any, limit: float, size: int) -> np.ndarray:
    """Return class probabilities on a square grid around the origin, [size, size, classes], for `class_panel`."""
    probabilities = model.predict_distribution(square(limit, size)).probabilities
    return np.asarray(probabilities.reshape(size, size, -1), np.float32)


def as_float32(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return arrays in the precision that a figure needs."""
    return {name: np.asarray(array, np.float32) for name, array in arrays.items()}
