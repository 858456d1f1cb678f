"""Whether predictive distributions are right: the PIT of targets is uniform, confidence in a class is its frequency.

The distance from uniform is that of Kolmogorov and Smirnov. Its usual p-value takes the rows as independent. Held-out
rows are not, where few rows were fitted: the function is uncertain, and rows next to each other share its error. So the
distance is also compared with those of targets that the model itself draws, functions and noise. It has to be
surprising by both.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import kstest

from metaprior.diagnosis.finding import Finding, LeftOut
from metaprior.diagnosis.subject import Subject
from metaprior.metrics import expected_calibration_error
from metaprior.predictive.classes import class_numbers

NAME = "calibration"
#: The p-value below which a deviation is reported, and the least rows that are looked at.
LEVEL, LEAST_ROWS = 0.01, 10


def calibration(subject: Subject) -> Finding | LeftOut:
    """Test the PIT of numbers, or the confidence in classes."""
    if len(subject) < LEAST_ROWS:
        return LeftOut(NAME, f"{len(subject)} rows are too few for a test; give at least {LEAST_ROWS}.")
    return _of_classes(subject) if subject.is_classification else _of_numbers(subject)


# --- numbers ----------------------------------------------------------------------------


class UniformTest(NamedTuple):
    """A test of uniformity of one output: the distance, its two p-values, the mean, and the spread (1 if uniform)."""

    distance: float
    p_value: float
    p_value_joint: float
    mean: float
    spread: float

    @property
    def p(self) -> float:
        """The larger of the two p-values."""
        return max(self.p_value, self.p_value_joint)


def uniform_test(pit: np.ndarray, replicates: np.ndarray | None, num_outputs: int = 1) -> UniformTest:
    """Test one output, [N], against replicates of all outputs, [R, N, outputs], if there are any.

    The p-values are those of the worst of the outputs.
    """
    found = kstest(pit, "uniform")
    p_joint = 0.0
    if replicates is not None:
        distances = np.array([max(ks_distance(column) for column in own.T) for own in replicates])
        p_joint = float((1 + np.sum(distances >= found.statistic)) / (1 + len(distances)))
    spread = 12 * float(np.mean((pit - 0.5) ** 2))
    p_value = min(1.0, float(found.pvalue) * num_outputs)
    return UniformTest(float(found.statistic), p_value, p_joint, float(np.mean(pit)), spread)


def ks_distance(values: np.ndarray) -> float:
    """Return the largest distance between the distribution function of values in [0, 1] and that of a uniform."""
    ordered, count = np.sort(values), len(values)
    steps = np.arange(count + 1) / count
    return float(max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1])))


def _of_numbers(subject: Subject) -> Finding:
    pit, replicates = subject.pit, subject.replicate_pits
    tests = [uniform_test(column, replicates, pit.shape[1]) for column in pit.T]
    worst = min(range(len(tests)), key=lambda k: (tests[k].p, -tests[k].distance))
    test = tests[worst]
    numbers = {**test._asdict(), "num_rows": float(len(subject))}
    which = "" if len(tests) == 1 else f" of target {worst}"
    told = f"Kolmogorov-Smirnov distance {test.distance:.3f}, p = {test.p:.2g}, on {subject.rows_name}"
    if test.p >= LEVEL:
        return Finding(NAME, "ok", f"The predictive distributions{which} are calibrated ({told}).", "", numbers)
    if subject.is_training and test.spread < 1:
        sentence = f"Training rows lie nearer to the mean than predicted{which} ({told}), as they usually do."
        return Finding(NAME, "ok", f"{sentence} Held-out rows would show the calibration.", "", numbers)
    kind, advice = _deviation(subject, test, pit[:, worst])
    return Finding(NAME, "warning", f"The predictive distributions{which} are {kind} ({told}).", advice, numbers)


def _deviation(subject: Subject, test: UniformTest, pit: np.ndarray) -> tuple[str, str]:
    """Return what is wrong with the distributions and what to do."""
    error = np.sqrt(1 / 12 / len(pit))
    # values that are all at one end are shifted; at both ends they vary more than a uniform's
    if abs(test.mean - 0.5) > 4 * error and 12 * np.var(pit) < 1:
        side = "low: targets lie above them" if test.mean > 0.5 else "high: targets lie below them"
        return f"too {side} (mean PIT {test.mean:.2f})", (
            "Look for a drift between the rows of the fit and these, or for a trend that the input_kernel misses."
        )
    if test.spread > 1.1:
        return f"too narrow (spread of the PIT {test.spread:.2f} of a uniform's)", _advice_for_narrow(subject)
    if test.spread < 0.9:
        return f"too wide (spread of the PIT {test.spread:.2f} of a uniform's)", (
            "Raise max_iter if the fit has not converged; try another input_kernel, or likelihood='student_t' if a few "
            "outliers have made the noise large."
        )
    return "of the wrong shape", (
        "The noise is not Gaussian or not the same everywhere: try likelihood='student_t' (outliers), "
        "likelihood='heteroscedastic' (noise that depends on X), or a transformed y."
    )


def _advice_for_narrow(subject: Subject) -> str:
    if not subject.is_metagp:
        return "Give the model more ways to be uncertain: more members, a wider prior, or another method."
    is_sure = subject.model.hypers is None and subject.model.output is not None
    first = "Take uncertain_hypers=True, so that kernel and noise are not point estimates" if is_sure else ""
    second = "likelihood='student_t' if a few rows lie far off, likelihood='heteroscedastic' if noise depends on X"
    return f"{first}; {second}." if first else f"Try {second}, or another input_kernel."


# --- classes ----------------------------------------------------------------------------


def _of_classes(subject: Subject) -> Finding:
    p = subject.predictive.probabilities
    found = expected_calibration_error(p, subject.targets)
    expected = np.array([expected_calibration_error(p, labels) for labels in _labels(subject, p)])
    p_value = float((1 + np.sum(expected >= found)) / (1 + len(expected)))
    confidence = float(np.mean(np.max(p, axis=1)))
    accuracy = float(np.mean(np.argmax(p, axis=1) == subject.targets))
    numbers = {
        "calibration_error": found,
        "expected_mean": float(expected.mean()),
        "expected_std": float(expected.std()),
        "p_value": p_value,
        "confidence": confidence,
        "accuracy": accuracy,
    }
    told = (
        f"expected calibration error {found:.3f}, {expected.mean():.3f} ± {expected.std():.3f} if all probabilities "
        f"were right, p = {p_value:.2g}, on {subject.rows_name}"
    )
    if p_value >= LEVEL:
        return Finding(NAME, "ok", f"The class probabilities are calibrated ({told}).", "", numbers)
    if subject.is_training and accuracy > confidence:
        sentence = f"Training rows are classified better than predicted ({told}), as they usually are."
        return Finding(NAME, "ok", f"{sentence} Held-out rows would show the calibration.", "", numbers)
    kind = "overconfident" if confidence > accuracy else "not confident enough"
    sentence = f"The probabilities are {kind}: accuracy {accuracy:.3f}, mean confidence {confidence:.3f} ({told})."
    return Finding(NAME, "warning", sentence, _advice_for_classes(subject, is_sure=confidence > accuracy), numbers)


def _labels(subject: Subject, p: np.ndarray) -> list[np.ndarray]:
    """Return classes that the model itself expects: drawn with its functions where it can, or row by row."""
    if not subject.is_training and subject.replicates is not None:
        classes = subject.predictive.classes
        return [class_numbers(classes, labels, "diagnose") for labels in subject.replicates]
    rng, ends = np.random.default_rng(subject.seed), np.cumsum(p, axis=1)
    draws = [np.sum(ends < rng.uniform(size=(len(p), 1)) * ends[:, -1:], axis=1) for _ in range(256)]
    return [np.minimum(labels, p.shape[1] - 1) for labels in draws]


def _advice_for_classes(subject: Subject, *, is_sure: bool) -> str:
    if not is_sure:
        return "Raise max_iter if the fit has not converged; try another input_kernel or more units."
    if subject.is_metagp:
        return "Take uncertain_hypers=True, input_kernel='rbf', or early_stopping=True; more rows help most."
    return "Give the model more ways to be uncertain: more members, a wider prior, or another method."
