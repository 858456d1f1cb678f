"""Whether hidden units are switched off: what each of them adds to the variance of the function in the prior."""

import numpy as np

from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.prior_variance import prior_variance
from metaprior.diagnosis.subject import Subject
from metaprior.weights import metagp_of

NAME = "hidden_units"
#: The share of the variance below which all hidden units together are off, and the part of the largest unit's variance
#: below which a single one is.
LEAST_SHARE, LEAST_PART = 0.01, 1e-3
#: The part of active units below which a smaller network would do.
FEW = 0.1


def hidden_units(subject: Subject) -> Finding | LeftOut:
    """Count the units of the last hidden layer that the function depends on."""
    if not subject.is_metagp or subject.model.output is None:
        return LeftOut(NAME, "only a MetaGP with an integrated output layer says what each unit adds.")
    if not subject.estimator.hidden_layer_sizes:
        return LeftOut(NAME, "there is no hidden layer.")
    parts = prior_variance(subject.model, subject.seen_x_unit)
    share = max(0.0, 1 - parts.bias_only / max(parts.total, np.finfo(np.float64).tiny))
    largest = np.max(parts.each_unit)
    active = int(np.sum(parts.each_unit > LEAST_PART * largest)) if largest > 0 else 0
    numbers = {"share": share, "active": float(active), "total": float(len(parts.each_unit))}
    if share < LEAST_SHARE and metagp_of(subject.model.weights).has_local_output:
        sentence = (
            f"The hidden units are switched off ({share:.1%} of the function's prior variance): the model is a "
            "Gaussian process with the input kernel."
        )
        advice = "Nothing is wrong. With few rows, baselines.ExactGPRegressor fits the same model faster."
        return Finding(NAME, "note", sentence, advice, numbers)
    told = f"{active} of the {len(parts.each_unit)} units of the last hidden layer are at work"
    if active <= FEW * len(parts.each_unit):
        sentence = f"Only {told}."
        advice = f"A smaller network would do: hidden_layer_sizes=(..., {max(active, 1) * 2})."
        return Finding(NAME, "note", sentence, advice, numbers)
    return Finding(NAME, "ok", f"{told[0].upper()}{told[1:]}.", "", numbers)
