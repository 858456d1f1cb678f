"""Whether the input kernel is switched off, so that the model is the global one.

Two things switch it off: a lengthscale far beyond the spread of the data, and bias weights so small that hidden units
carry the whole function and the kernel modulates nothing that matters.
"""

import jax.numpy as jnp
import numpy as np

from metaprior.compilation import as_float64, in_float64
from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.prior_variance import MOST_ROWS, prior_variance
from metaprior.diagnosis.subject import Subject
from metaprior.weights import metagp_of

NAME = "input_kernel"
#: How little the kernel may vary over the data, and how little of the function's prior variance may come from it.
LEAST_VARIATION, LEAST_SHARE = 1e-3, 0.01


def input_kernel(subject: Subject) -> Finding | LeftOut:
    """Look at how much the kernel varies over the data, and at what the function owes to it."""
    if not subject.is_metagp or subject.estimator.input_kernel_ is None:
        return LeftOut(NAME, "there is no input kernel.")
    variation = kernel_variation(subject)
    numbers = {"variation": variation}
    if variation < LEAST_VARIATION:
        return _switched_off(subject, f"it differs by {variation:.1g} between rows at the most", numbers)
    weights = metagp_of(subject.model.weights)
    if subject.model.output is None or not weights.has_local_output:
        sentence = f"The input kernel falls to {1 - variation:.2g} between rows of the data."
        return Finding(NAME, "ok", sentence, "", numbers)
    parts = prior_variance(subject.model, subject.seen_x_unit)
    share = abs(parts.total - parts.without_kernel) / max(parts.total, np.finfo(np.float64).tiny)
    numbers["prior_share"] = share
    if share < LEAST_SHARE:
        return _switched_off(subject, f"{share:.1%} of the function's prior variance depends on it", numbers)
    sentence = (
        f"The input kernel is at work: it falls to {1 - variation:.2g} between rows of the data, and "
        f"{min(share, 1):.0%} of the function's prior variance depends on it."
    )
    return Finding(NAME, "ok", sentence, "", numbers)


def kernel_variation(subject: Subject) -> float:
    """Return 1 minus the least correlation of the input kernel between two rows."""
    weights = metagp_of(subject.model.weights)
    assert weights.input_kernel is not None
    x = subject.seen_x_unit
    x = x[np.linspace(0, len(x) - 1, min(MOST_ROWS, len(x))).round().astype(int)]
    with in_float64():
        kernel = as_float64(weights.input_kernel)
        eps = as_float64(weights.input_map)([jnp.asarray(m) for m in weights.input_map.means], jnp.asarray(x))
        std = np.sqrt(np.asarray(kernel.diagonal(eps)))
        gram = np.asarray(kernel(eps, eps))
    scaled = gram / np.maximum(std[:, None] * std, np.finfo(np.float64).tiny)
    return float(1 - np.min(scaled))


def _switched_off(subject: Subject, reason: str, numbers: dict[str, float]) -> Finding:
    advice = (
        "Bound its lengthscale, as in input_kernel=kernels.RBF(bounds={'lengthscale': (low, high)}), with high at "
        "about the spread of the column; or take input_kernel=None, which is the same model and fits faster."
    )
    sentence = f"The input kernel is switched off ({reason}), so the model is the global one."
    return Finding(NAME, "warning", sentence, advice, numbers)
