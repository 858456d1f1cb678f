"""How judges compare numbers with claims: with standard errors, seed by seed where two methods saw the same data.

A difference counts if it is larger than two standard errors. A single run has no standard error; its difference counts
as it is, and the evidence says that it is one run.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from metaprior_reproduction.parts.item import Results, Summary, Verdict, Whose

Word = Literal["agrees", "better", "worse"]
#: The number of standard errors that a difference must exceed to count.
ERRORS = 2.0


def summarised(values: Sequence[float] | np.ndarray) -> Summary:
    """Return mean, standard error and number of values."""
    found = np.asarray(values, np.float64)
    if not len(found):
        return Summary(float("nan"), float("nan"), 0)
    se = float(np.std(found, ddof=1) / np.sqrt(len(found))) if len(found) > 1 else float("nan")
    return Summary(float(np.mean(found)), se, len(found))


def margin(summary: Summary) -> float:
    """Return what a difference must exceed: two standard errors, or 0 for one run."""
    return ERRORS * summary.se if np.isfinite(summary.se) else 0.0


def said(summary: Summary, digits: int = 3) -> str:
    """Return a summary in words: "0.105 ± 0.002", or "0.105 (one run)"."""
    error = f"± {summary.se:.{digits}f}" if np.isfinite(summary.se) else "(one run)"
    return f"{summary.mean:.{digits}f} {error}"


def differences(results: Results, first: str, second: str, metric: str) -> np.ndarray:
    """Return metric(first) - metric(second) for every seed that both have."""
    one, other = (_by_seed(results, method, metric) for method in (first, second))
    return np.array([one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())], np.float64)


def paired(results: Results, first: str, second: str, metric: str) -> Summary:
    """Return the mean of the seed-by-seed differences between two methods, with its standard error."""
    return summarised(differences(results, first, second, metric))


def against_paper(ours: Summary, paper: float, rounding: float = 0.005) -> Word:
    """Return how a number compares with the paper's, which is rounded and has no error; smaller is better."""
    allowed = margin(ours) + rounding
    if ours.mean <= paper + allowed:
        return "better" if ours.mean < paper - allowed else "agrees"
    return "worse"


def at_most(claim: str, found: Summary, bound: float, evidence: str, *, whose: Whose) -> Verdict:
    """Judge that a number is at most a bound: "better" if clearly below, "worse" if clearly above, else "agrees"."""
    if found.mean - margin(found) > bound:
        return Verdict(claim, "worse", evidence, whose)
    return Verdict(claim, "better" if found.mean + margin(found) < bound else "agrees", evidence, whose)


def clearly(claim: str, holds: bool, evidence: str, *, whose: Whose) -> Verdict:
    """Judge a claim that either holds or does not."""
    return Verdict(claim, "agrees" if holds else "worse", evidence, whose)


def is_below(difference: Summary, bound: float = 0.0) -> bool:
    """Return whether a number lies below a bound by more than its margin."""
    return bool(difference.mean + margin(difference) < bound)


def is_above(difference: Summary, bound: float = 0.0) -> bool:
    """Return whether a number lies above a bound by more than its margin."""
    return bool(difference.mean - margin(difference) > bound)


def _by_seed(results: Results, method: str, metric: str) -> dict[int, float]:
    runs = results.of(method)
    return {run.seed: float(run.outcome.metrics[metric]) for run in runs if metric in run.outcome.metrics}
