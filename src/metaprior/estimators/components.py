"""What each additive part of a fitted input kernel contributes to the prediction."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from metaprior.estimators.fit import method_of
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
    """The parts of a fitted function, f = average + sum of the parts, at given rows.

    Arrays are [parts, N], or [parts, N, outputs] for several targets or classes. They are in the units of the target;
    for classes they are parts of the logits, and for counts of the logarithm of the rate.
    """

    #: What each part is: its kernel, in the units of the data. The last may be "weight noise", which follows no kernel.
    names: list[str]
    #: E[f_c | y]: these add up to the mean of the function, less its average.
    mean: np.ndarray
    #: The standard deviation of f_c given y. The parts are dependent, so variances do not add up.
    std: np.ndarray
    kernels: list[Kernel]


def kernel_components(model: Any, X: Any) -> KernelComponents:
    """Return what each additive part of the fitted input kernel contributes at the rows of X.

    A kernel k = k_1 + k_2 makes the function a sum of two, and the data say something of each of them. Products and
    scalings of sums are multiplied out.

    Parameters
    ----------
    model : MetaGPRegressor or MetaGPClassifier
        Fitted, with an input kernel and an integrated output layer.
    X : array-like of shape (n_samples, n_features)

    Returns
    -------
    KernelComponents
    """
    check_is_fitted(model)
    kernel = vars(model).get("input_kernel_")
    if kernel is None:
        raise ValueError(
            f"kernel_components: expected a fitted estimator with an input kernel; {type(model).__name__} has none. Fit "
            "one with input_kernel=kernels.Periodic() + kernels.RBF(), for instance."
        )
    draws = method_of(model).function_draws(model, model._standardised(X))
    if not isinstance(draws, IntegratedDraws) or not metagp_of(draws.model.weights).has_local_output:
        raise ValueError(
            "kernel_components: expected an integrated output layer that the input kernel reaches, whose parts have a "
            "posterior in closed form; fit with output_layer='auto' and local_layers=None."
        )
    mean, variance = part_moments(draws)
    mean, std = _in_units(model, mean, np.sqrt(variance))
    kernels = additive_parts(kernel)
    extra = [WEIGHT_NOISE] * (len(mean) - len(kernels))
    return KernelComponents([*map(repr, kernels), *extra], mean, std, kernels)


def _in_units(model: Any, mean: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised functions in the units of the target, of those outputs that are its mean."""
    targets = model._fitted_targets()
    if isinstance(targets, RegressionTargets) and not isinstance(model.model_.likelihood, Poisson):
        mean, std = (values[..., : len(targets.scale)] * targets.scale for values in (mean, std))
    return (mean[..., 0], std[..., 0]) if mean.shape[-1] == 1 else (mean, std)
