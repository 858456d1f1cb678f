"""What each additive part of a fitted input kernel contributes to the prediction."""

import re
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metaprior.estimators.fit import method_of
from metaprior.estimators.method import NetworkMethod
from metaprior.estimators.targets import RegressionTargets
from metaprior.kernels import Kernel
from metaprior.kernels.compose import additive_parts
from metaprior.likelihoods import Poisson
from metaprior.predictive.components import part_moments
from metaprior.predictive.integrated import IntegratedDraws
from metaprior.weights import metagp_of

#: The name of the part that follows no kernel.
WEIGHT_NOISE = "weight noise"


class KernelComponents(NamedTuple):
    """The parts of a fitted function at given rows: the mean of the function is `average` plus the sum of their means.

    Arrays are [parts, N], or [parts, N, outputs] for several targets or classes. They are in the units of the target;
    for classes they are parts of the logits, and for counts of the logarithm of the rate.
    """

    #: What each part is: its kernel, in the units of the data. The last may be "weight noise", which follows no kernel.
    names: list[str]
    #: E[f_c | y], less its average over the rows `around`.
    mean: np.ndarray
    #: The standard deviation of the same. The parts are dependent given y, so variances do not add up.
    std: np.ndarray
    #: The average of the whole function over the rows `around`: one number, or one per output.
    average: np.ndarray
    kernels: list[Kernel]


def kernel_components(model: Any, X: Any, *, around: Any = None) -> KernelComponents:
    """Return what each additive part of the fitted input kernel contributes at the rows of X.

    A kernel k = k_1 + k_2 makes the function a sum of two, and the data say something of each of them. Products and
    scalings of sums are multiplied out. The data say little of the level of one part, so each is seen around its own
    average over some rows.

    Parameters
    ----------
    model : MetaGPRegressor or MetaGPClassifier
        Fitted, with an input kernel and an integrated output layer.
    X : array-like of shape (n_samples, n_features)
    around : array-like of shape (n_rows, n_features), default=None
        The rows over which every part is 0 on average (of more than 256, as many are taken evenly); None is X.

    Returns
    -------
    KernelComponents
    """
    check_is_fitted(model)
    kernel = vars(model).get("input_kernel_")
    if kernel is None:
        raise ValueError(
            f"kernel_components: expected a fitted estimator with an input kernel; {type(model).__name__} has none. "
            "Fit one with input_kernel=kernels.Periodic() + kernels.RBF(), for instance."
        )
    method = method_of(model)
    draws = method.function_draws(model, model._standardised(X)) if isinstance(method, NetworkMethod) else None
    if not isinstance(draws, IntegratedDraws) or not metagp_of(draws.model.weights).has_local_output:
        raise ValueError(
            "kernel_components: expected an integrated output layer that the input kernel reaches, whose parts have a "
            "posterior in closed form; fit with output_layer='auto' and local_layers=None."
        )
    found = part_moments(draws, draws.x if around is None else model._standardised(around))
    kernels = additive_parts(kernel)
    extra = [WEIGHT_NOISE] * (len(found.mean) - len(kernels))
    arrays = _in_units(model, found.mean, np.sqrt(found.variance), found.average)
    return KernelComponents([*map(short_name, kernels), *extra], *arrays, kernels)


def short_name(kernel: Kernel) -> str:
    """Return how a kernel is shown, with three digits of every number and without long lists."""
    text = re.sub(r"\d+\.\d+(e[-+]?\d+)?", lambda found: f"{float(found[0]):.3g}", repr(kernel))
    text = re.sub(r"\[([^][,]*)\]", r"\1", text)
    return re.sub(r"\[[^][]*(,[^][]*){3,}\]", "...", text)


def _in_units(
    model: Any, mean: np.ndarray, std: np.ndarray, average: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return standardised functions in the units of the target, of those outputs that are its mean."""
    targets = model._fitted_targets()
    if isinstance(targets, RegressionTargets) and not isinstance(model.model_.likelihood, Poisson):
        mean, std, average = (values[..., : len(targets.scale)] * targets.scale for values in (mean, std, average))
        average = average + targets.offset
    if mean.shape[-1] > 1:
        return mean, std, average
    return mean[..., 0], std[..., 0], average[..., 0]
