"""Whether the predictions are better than a constant: log densities against those of a constant predictor."""

import numpy as np
from scipy.special import gammaln, xlogy

from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.subject import Subject, columns

NAME = "skill"
#: Standard errors by which the predictions must be better.
ERRORS = 2.0


def skill(subject: Subject) -> Finding | LeftOut:
    """Compare the negative log likelihood with that of the constant that the targets suggest."""
    if len(subject) < 2:
        return LeftOut(NAME, "one row has no standard error.")
    own, constant = subject.predictive.log_prob(subject.labels), _constant_log_prob(subject)
    gain = own - constant
    mean, error = float(np.mean(gain)), float(np.std(gain, ddof=1) / np.sqrt(len(gain)))
    nll = -float(np.mean(own))
    numbers = {"nll": nll, "constant_nll": -float(np.mean(constant)), "gain": mean, "gain_error": error}
    told = f"{nll:.3g} nats per row against {numbers['constant_nll']:.3g}; gain {mean:.3g} ± {error:.2g}"
    if mean > ERRORS * error:
        return Finding(NAME, "ok", f"The predictions are better than a constant ({told}).", "", numbers)
    if mean < -ERRORS * error:
        sentence = f"The predictions are worse than a constant ({told}): the model is sure of what is not so."
        advice = f"{_advice(subject)} Look for rows that differ from those of the fit."
        return Finding(NAME, "warning", sentence, advice, numbers)
    sentence = f"The predictions are no better than a constant ({told})."
    return Finding(NAME, "warning", sentence, _advice(subject), numbers)


def _advice(subject: Subject) -> str:
    if subject.is_metagp:
        return "Try another input_kernel, n_restarts=3, or more rows; uncertain_hypers=True where they are few."
    return "Try another kernel or network, or more rows."


def _constant_log_prob(subject: Subject) -> np.ndarray:
    """Return log densities of the best constant of these rows themselves, which favours the constant a little."""
    if subject.is_classification:
        counts = np.bincount(subject.targets, minlength=len(subject.estimator.classes_)) + 0.5
        return np.log(counts / counts.sum())[subject.targets]
    y = columns(subject.targets)
    if vars(subject.estimator).get("likelihood") == "poisson":
        rate = np.maximum(y.mean(axis=0), 0.5 / len(y))
        return np.sum(xlogy(y, rate) - rate - gammaln(y + 1), axis=1)
    std = np.maximum(y.std(axis=0), np.finfo(np.float64).tiny ** 0.5)
    return np.sum(-0.5 * ((y - y.mean(axis=0)) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi), axis=1)
