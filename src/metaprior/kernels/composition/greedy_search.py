"""The search: from base kernels to sums of products, one base kernel more at every level, the best few going on.

All base kernels are tried alone, then all pairs of them (of many columns, of the best eight), then what the best few
become with one more. A candidate's score is its log evidence less log(N) / 2 for every hyper-parameter (BIC).
Every candidate starts from what its parent found and from several values of the new base kernel; a few steps tell which
candidates are worth more, on few of the rows, and only these run to their end on all. Then each of them starts once
more from the base kernels of those that are ahead. At last base kernels that are not needed are taken away again. The
cost is some dozens of N^3 per candidate.
"""

import itertools
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from metaprior.kernels.composition.bases import NAMES, STATIONARY, Base
from metaprior.kernels.composition.evidence import COMMON, Evidence, Fitted
from metaprior.kernels.composition.expression import Composition, assembled
from metaprior.kernels.composition.found import FoundKernel, Tried, found_kernel
from metaprior.periods import periods_of

#: Base kernels that are tried where the user names none.
BASES = ("linear", "rbf", "matern12", "periodic")
#: Where lengthscales start, in standard deviations of the column, and periods that are tried.
LENGTHS, MOST_PERIODS = (0.15, 0.6, 2.0), 3
#: Turns over the data of the periods that are tried in products.
TURNS = tuple(0.5 * number for number in range(4, 25))
#: Starts of a candidate, of either kind, that take the first steps; these steps; those of the best; the candidates that
#: run to their end on all rows; and the steps there.
STARTS, FIRST_STEPS, MORE_STEPS, FINALISTS, LAST_STEPS = 4, 8, 30, 8, 60
#: Rows on which all but the last steps are taken: the evidence of few rows is smoother, and cheap.
FEW_ROWS = 90
#: Base kernels from which larger compositions are made, where there are many columns.
MOST_BASES = 8
#: The scale of a new term and the noise of a fresh start, in variances of the target.
NEW_SCALE, FRESH_NOISE = 0.3, 0.1
#: The least variances of noise and constant that a candidate starts with, and the most fresh starts.
LEAST_START, MOST_FRESH = 1e-3, 60


def search(
    X: Any,
    y: Any,
    *,
    depth: int = 3,
    bases: Sequence[str] = BASES,
    beam: int = 3,
    max_rows: int = 300,
    names: Sequence[str] | None = None,
    units: Sequence[str] | str | None = None,
    random_state: int = 0,
) -> FoundKernel:
    """Find the sum of products of base kernels that explains y best, and say in words what each component is.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features) or (n_samples,)
        Inputs.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets; several share one kernel.
    depth : int, default=3
        The largest number of base kernels in the composition.
    bases : sequence of str
        Base kernels to try, among "linear", "rbf", "matern12", "matern32", "matern52", "rational_quadratic" and
        "periodic". Each acts on one column; with several columns there is also an RBF on all of them.
    beam : int, default=3
        How many compositions of a level are extended in the next one.
    max_rows : int, default=300
        The number of rows whose evidence is computed; of more, so many are chosen at random. Time grows with its cube.
    names : sequence of str, optional
        Names of the columns in the sentences; those of a DataFrame are the default.
    units : str or sequence of str, optional
        The unit of each column, such as "day" or "km". Periods of a day, a week, a month or a year are called so where
        the unit is one of time.
    random_state : int, default=0
        Which rows are chosen.

    Returns
    -------
    FoundKernel
        The kernel, to be given as `input_kernel`; its components with their sentences; all that was tried.

    Examples
    --------
    >>> import numpy as np
    >>> from metaprior import kernels
    >>> x = np.arange(150.0)
    >>> y = 0.01 * x + np.sin(2 * np.pi * x / 7) + 0.1 * np.random.default_rng(0).standard_normal(150)
    >>> found = kernels.search(x, y, depth=2, units="day")
    >>> found.composition
    'linear + periodic'
    """
    began = time.perf_counter()
    problem = _Problem.of(X, y, bases, names, units, max_rows, random_state)
    for name, value in (("depth", depth), ("beam", beam)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name}: expected a whole number of at least 1; got {value!r}.")
    tried = _levels(problem, int(depth), int(beam))
    best = _simplified(problem, tried)
    return found_kernel(best.fitted, tried, problem, time.perf_counter() - began)


class _Problem(NamedTuple):
    """Standardised rows and targets, their units, and the base kernels."""

    evidence: Evidence
    #: The same for few of these rows.
    few: Evidence
    num_all: int
    names: tuple[str, ...]
    units: tuple[str, ...]
    #: Offset and scale of the columns, and the scale of all targets.
    offset: np.ndarray
    scale: np.ndarray
    target_scale: np.ndarray
    bases: tuple[Base, ...]
    growths: tuple[Base, ...]
    #: Logs of the starting periods of every column, in standardised units.
    periods: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any,
        bases: Sequence[str],
        names: Sequence[str] | None,
        units: Sequence[str] | str | None,
        max_rows: int,
        random_state: int,
    ) -> "_Problem":
        """Check and standardise the data."""
        x, targets = _checked(X, y)
        offset, scale = x.mean(axis=0), x.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        target_scale = np.maximum(targets.std(axis=0), 1e-300)
        standard, centred = (x - offset) / scale, (targets - targets.mean(axis=0)) / target_scale
        order = np.random.default_rng(random_state).permutation(len(x))
        keep, few = np.sort(order[:max_rows]), np.sort(order[: min(FEW_ROWS, max_rows)])
        num_columns = x.shape[1]
        wanted = "periodic" in bases
        periods = tuple(_starting_periods(column, centred) if wanted else np.zeros(0) for column in standard.T)
        return cls(
            Evidence(standard[keep], centred[keep]),
            Evidence(standard[few], centred[few]),
            len(x),
            _words("names", _names(X) if names is None else names, num_columns),
            _words("units", units, num_columns),
            offset,
            scale,
            target_scale,
            _bases(bases, num_columns),
            tuple(Base("growth", (column,)) for column in range(num_columns)),
            periods,
        )

    def values(self, base: Base, *, in_product: bool = False) -> list[np.ndarray]:
        """Return the values that a new base kernel starts from; the peaks of a product may be beside its period."""
        if base.name == "periodic":
            column = base.columns[0]
            spread = float(np.ptp(self.evidence.rows.x[:, column])) or 1.0
            turns = tuple(np.log(spread / np.array(TURNS))) if in_product else ()
            return [np.array([log, 0.0]) for log in (*self.periods[column], *turns)]
        if base.name in STATIONARY:
            tail = [0.0] if base.name == "rational_quadratic" else []
            return [np.array([np.log(length)] * len(base.columns) + tail) for length in LENGTHS]
        return [np.zeros(base.num_hypers)]


# --- the levels -----------------------------------------------------------------------


def _levels(problem: _Problem, depth: int, beam: int) -> list[Tried]:
    """Return all that was tried, level by level; a level that brings nothing is the last."""
    nothing = problem.evidence.climbed(problem.evidence.at(Composition(()), np.log([0.5, 1e-3])), LAST_STEPS)
    tried, parents, own = [Tried(0, nothing, len(problem.evidence.y), True)], [nothing], problem.bases
    for level in range(1, depth + 1):
        found = _level(problem, parents, own, level, {each.fitted.composition for each in tried})
        if not found:
            break
        found.sort(key=lambda each: -each.score)
        is_better = found[0].score > max(each.score for each in tried)
        tried += found
        if level == 1:
            own = tuple(each.fitted.composition.terms[0][0] for each in found[:MOST_BASES])
            parents = [each.fitted for each in found[: MOST_BASES if len(problem.scale) == 1 else beam]]
        elif is_better:
            parents = [each.fitted for each in found[:beam]]
        else:
            break
    return tried


def _level(
    problem: _Problem, parents: Sequence[Fitted], bases: Sequence[Base], level: int, known: set[Composition]
) -> list[Tried]:
    """Return the compositions that the parents become with one base kernel more, fitted."""
    starts = dict[Composition, list[np.ndarray]]()
    for parent in parents:
        for composition, theta in _children(problem, parent, bases):
            if composition not in known:
                starts.setdefault(composition, []).append(theta)
    runs = [_first_steps(problem, composition, inherited) for composition, inherited in starts.items()]
    runs.sort(key=lambda each: -each[0].score(len(problem.few.y)))
    found, num_rows = [], len(problem.evidence.y)
    for place, run in enumerate(runs):
        ended = [problem.evidence.at(each.composition, each.theta) for each in run]
        if place < FINALISTS:
            ended = [problem.evidence.climbed(each, LAST_STEPS) for each in ended]
        best = max(ended, key=lambda each: each.log_evidence)
        found.append(Tried(level, best, num_rows, place < FINALISTS))
    return [_borrowing(problem, each, found) if each.ended else each for each in found]


def _borrowing(problem: _Problem, own: Tried, others: Sequence[Tried]) -> Tried:
    """Return a candidate, fitted once more with the base kernels that the best other candidates have found."""
    composition, (common, theta) = own.fitted.composition, np.split(own.fitted.theta, [COMMON])
    better = sorted((each for each in others if each.score > own.score), key=lambda each: each.score)
    values = {
        base: found for each in better for base, found in each.fitted.composition.values(each.fitted.theta[COMMON:])
    }
    start = problem.evidence.at(composition, np.concatenate([common, composition.with_values(theta, values)]))
    if not better or not np.isfinite(start.log_evidence) or np.array_equal(start.theta, own.fitted.theta):
        return own
    start = start._replace(theta=np.concatenate([np.maximum(common, np.log(LEAST_START)), start.theta[COMMON:]]))
    again = problem.evidence.climbed(start, LAST_STEPS)
    return own._replace(fitted=again) if again.log_evidence > own.fitted.log_evidence else own


def _simplified(problem: _Problem, tried: list[Tried]) -> Tried:
    """Return the best composition after base kernels that it does not need are taken away again; add these to `tried`.

    What was found early may be no longer needed, and a smaller composition may be reached only from the larger one.
    """
    best = max(tried, key=lambda each: each.score)
    while best.fitted.composition.num_bases > 1:
        smaller = []
        common, theta = np.split(best.fitted.theta, [COMMON])
        for composition, kept in best.fitted.composition.reduced(theta):
            start = problem.evidence.at(composition, np.concatenate([common, kept]))
            fitted = problem.evidence.climbed(start, LAST_STEPS)
            smaller.append(Tried(composition.num_bases, fitted, best.num_rows, True))
        ahead = max(smaller, key=lambda each: each.score)
        if ahead.score <= best.score:
            break
        tried[:] = [each for each in tried if each.fitted.composition != ahead.fitted.composition] + [ahead]
        best = ahead
    return best


def _children(problem: _Problem, parent: Fitted, bases: Sequence[Base]) -> list[tuple[Composition, np.ndarray]]:
    """Return all that a composition may become, with the hyper-parameters to start from."""
    common, theta = np.split(parent.theta, [COMMON])
    common = np.maximum(common, np.log(LEAST_START))  # with hardly any noise no start but the best is worth anything
    found = []
    for move in parent.composition.moves(bases, [base for base in problem.growths if len(parent.composition.terms)]):
        for own in problem.values(move.base):
            composition, moved = parent.composition.moved(theta, move, own, np.log(NEW_SCALE))
            found.append((composition, np.concatenate([common, moved])))
    return found


def _fresh(problem: _Problem, composition: Composition) -> list[np.ndarray]:
    """Return hyper-parameters that owe nothing to a parent: all combinations of the base kernels' values, or many."""
    bases = [base for term in composition.terms for base in term]
    is_product = any(len(term) > 1 for term in composition.terms)
    options = list(itertools.product(*[problem.values(base, in_product=is_product) for base in bases]))
    if len(options) > MOST_FRESH:
        options = [options[place] for place in np.random.default_rng(0).permutation(len(options))[:MOST_FRESH]]
    scale = np.log([1 / len(composition.terms)])
    found = []
    for option in options:
        values = iter(option)
        parts = [(scale, [(base, next(values)) for base in term]) for term in composition.terms]
        found.append(np.concatenate([np.log([FRESH_NOISE, 1e-3]), assembled(parts)[1]]))
    return found


def _first_steps(problem: _Problem, composition: Composition, inherited: Sequence[np.ndarray]) -> list[Fitted]:
    """Return the best run from inherited starts and the best from fresh ones after their first steps, the best first.

    Those from fresh starts are behind at first, because a parent has been fitted, and are often ahead in the end.
    """
    evidence, runs = problem.few, []
    for starts in (inherited, _fresh(problem, composition) if composition.num_bases > 1 else []):
        begun = [Fitted(composition, theta, evidence.value(composition, theta)) for theta in starts]
        begun.sort(key=lambda each: -each.log_evidence)
        ahead = [evidence.climbed(each, FIRST_STEPS) for each in begun[:STARTS]]
        ahead.sort(key=lambda each: -each.log_evidence)
        runs += [evidence.climbed(each, MORE_STEPS) for each in ahead[:1]]
    return sorted(runs, key=lambda each: -each.log_evidence)


# --- data -----------------------------------------------------------------------------


def _checked(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs [N, D] and targets [N, P] as finite numbers, or raise an error."""
    x, targets = np.asarray(X, np.float64), np.asarray(y, np.float64)
    x, targets = (each[:, None] if each.ndim == 1 else each for each in (x, targets))
    if x.ndim != 2 or targets.ndim != 2 or len(x) != len(targets) or len(x) < 4:
        raise ValueError(
            f"search: expected X [n, columns] and y [n] or [n, targets] with at least 4 rows; got shapes {np.shape(X)} "
            f"and {np.shape(y)}."
        )
    if not (np.isfinite(x).all() and np.isfinite(targets).all()):
        raise ValueError("search: expected finite numbers in X and y; got NaN or infinity. Drop or fill these rows.")
    return x, targets


def _bases(names: Sequence[str], num_columns: int) -> tuple[Base, ...]:
    """Return the base kernels on every column and, for several, an RBF on all."""
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names or isinstance(names, str):
        raise ValueError(f"bases: expected names among {list(NAMES)}; got {names!r}.")
    own = [Base(name, (column,)) for name in dict.fromkeys(names) for column in range(num_columns)]
    whole = [Base("rbf", tuple(range(num_columns)))] if num_columns > 1 and "rbf" in names else []
    return (*own, *whole)


def _names(X: Any) -> Sequence[str] | None:
    """Return the names of a DataFrame's columns."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def _words(parameter: str, words: Sequence[str] | str | None, num_columns: int) -> tuple[str, ...]:
    """Return one word per column."""
    if words is None:
        return tuple(f"x{column}" if parameter == "names" else "" for column in range(num_columns))
    found = (words,) if isinstance(words, str) else tuple(words)
    if len(found) != num_columns or not all(isinstance(word, str) for word in found):
        raise ValueError(f"{parameter}: expected {num_columns} words, one per column; got {words!r}.")
    return found


def _starting_periods(column: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return logs of the strongest periods, and of twice and three times the first."""
    found = periods_of(column, targets).period[:MOST_PERIODS]
    longest = max(float(np.ptp(column)), float(found[0]))
    return np.log([*found, *[times * found[0] for times in (2, 3) if times * found[0] < longest]])
