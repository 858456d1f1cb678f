"""Whether the variational posterior is near the posterior: k-hat of importance weights (Yao and others 2018).

Draws are of all that lies below the integrated output layer. k-hat is about the joint posterior of all of these
numbers, hundreds in a usual network, and is strict: predictions may be good where it is large.
"""

import numpy as np

from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.pareto import GOOD_K, effective_fraction, log_mean_exp, pareto_k_of
from metaprior.diagnosis.posterior import draws_of, log_weights, target_of
from metaprior.diagnosis.subject import Subject
from metaprior.inference.importance import num_numbers

NAME = "pareto_k"
#: Draws of the posterior: of a matrix of so many rows at the most, and beyond.
NUM_DRAWS, MANY_ROWS, FEW_DRAWS = 1000, 300, 200
#: The size of the largest matrix that is factored for every draw.
MOST_SIZE = 2500


def pareto_k(subject: Subject) -> Finding | LeftOut:
    """Fit the tail of the importance weights."""
    target = target_of(subject)
    if isinstance(target, str):
        return LeftOut(NAME, target)
    size = target.batch.y.size
    if target.is_exact and size > MOST_SIZE:
        return LeftOut(NAME, f"a matrix of size {size} would be factored for every draw; expected at most {MOST_SIZE}.")
    normals = draws_of(target, NUM_DRAWS if size <= MANY_ROWS else FEW_DRAWS, subject.seed)
    logs = log_weights(target, normals)
    count = num_numbers(target.model)
    if not np.all(np.isfinite(logs)):
        return LeftOut(NAME, f"{np.sum(~np.isfinite(logs))} of {len(logs)} log weights are not finite.")
    k = pareto_k_of(logs)
    numbers = {
        "k": k,
        "num_draws": float(len(logs)),
        "num_numbers": float(count),
        "effective_fraction": effective_fraction(logs),
        "elbo": float(np.mean(logs)),
        "gap": log_mean_exp(logs) - float(np.mean(logs)),
    }
    told = f"k-hat {k:.2f} over {len(logs)} draws of the {count} numbers below the output layer"
    if k < GOOD_K:
        return Finding(NAME, "ok", f"The variational posterior is near the posterior ({told}).", "", numbers)
    sentence = (
        f"The variational posterior differs from the posterior ({told}; good: below {GOOD_K}); weighting its draws "
        f"would raise the bound by {numbers['gap']:.2g} nats."
    )
    advice = (
        "Trust calibration and coverage on held-out rows more than the width of the posterior. uncertain_hypers=True, "
        "fewer units in hidden_layer_sizes or n_restarts bring the two nearer."
    )
    return Finding(NAME, "note", sentence, advice, numbers)
