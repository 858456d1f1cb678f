"""Whether training met numbers that were not finite, or matrices that could not be factored."""

from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.subject import Subject

NAME = "numerics"
#: The relative jitter from which a factor is that of another matrix.
MUCH_JITTER = 1e-3


def numerics(subject: Subject) -> Finding | LeftOut:
    """Look at how often training was rolled back and at the jitter that it needed."""
    fitted = vars(subject.estimator)
    if "n_roll_backs_" not in fitted:
        return LeftOut(NAME, "this fit keeps no record of roll-backs and jitter.")
    roll_backs, jitter = int(fitted["n_roll_backs_"]), float(fitted["jitter_"])
    numbers = {"n_roll_backs": float(roll_backs), "jitter": jitter}
    if roll_backs:
        sentence = f"Training turned non-finite {roll_backs} times and went on with smaller steps."
        advice = "Lower learning_rate_init, take dtype='float64', or look for extreme values in X and y."
        return Finding(NAME, "warning", sentence, advice, numbers)
    if jitter > MUCH_JITTER:
        sentence = f"A Cholesky factor needed a relative jitter of {jitter:.2g}, which changes the model."
        advice = "Take dtype='float64', or a smaller n_inducing or n_inducing_rows."
        return Finding(NAME, "warning", sentence, advice, numbers)
    return Finding(NAME, "ok", "All numbers of training were finite, and factors needed little jitter.", "", numbers)
