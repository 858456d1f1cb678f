"""Which regime an integrated output layer has, and where its inducing rows start."""

from typing import Any

import numpy as np

from metaprior.estimators.checks import is_whole
from metaprior.estimators.method import Problem
from metaprior.likelihoods import Gaussian
from metaprior.output_layer import Exact, InducingRows, OutputLayer, PseudoObservations

#: Relative jitter of the inducing rows' covariance. The prior's variance may be ten thousand times the noise's.
ROWS_JITTER = {"float32": 1e-4, "float64": 1e-9}
#: The names of `output_layer`.
REGIMES = ("auto", "exact", "inducing_rows", "pseudo_observations", "drawn")
#: The size of the matrix that the exact regime factors at every step: up to which it is chosen, and the most that it
#: can be asked for. It is rows times outputs, or units times outputs where the layer is global and these are fewer.
EXACT_CHOSEN, EXACT_MOST = 1200, 4000
#: Rows up to which inducing rows are chosen; with more, pseudo-observations see the rows in batches.
INDUCING_CHOSEN = 50_000
#: Inducing rows for Gaussian noise, for other likelihoods, and the fewest of these that do.
NUM_INDUCING_ROWS, NUM_PSEUDO_ROWS, LEAST_PSEUDO_ROWS = 300, 100, 50
#: Pseudo-observations (rows times functions) at the most, where the covariance of all of them is factored at every
#: step: for data up to so many rows, and for more.
FEW_ROWS, MOST_PSEUDO, MOST_PSEUDO_OF_MANY = 1000, 200, 800


def chosen_regime(name: str, gaussian: bool, num_rows: int, size: int) -> str:
    """Return the regime of a fit: the one that was named, or by the likelihood and the size of the data.

    `size` is that of the matrix that the exact regime would factor.
    """
    if name == "auto":
        if not gaussian:
            return "pseudo_observations"
        if size <= EXACT_CHOSEN:
            return "exact"
        return "inducing_rows" if num_rows <= INDUCING_CHOSEN else "pseudo_observations"
    if name in ("exact", "inducing_rows") and not gaussian:
        raise ValueError(
            f"output_layer={name!r}: expected Gaussian noise (likelihood='gaussian'), for which it has a closed form; "
            "take output_layer='pseudo_observations', which serves every likelihood."
        )
    if name == "exact" and size > EXACT_MOST:
        raise ValueError(
            f"output_layer='exact': expected at most {EXACT_MOST} rows (or, without an input kernel, units of the last "
            f"hidden layer) times outputs, whose covariance is factored at every step; got {size}. Take "
            "output_layer='inducing_rows'."
        )
    return name


def initial_output(
    regime: str, problem: Problem, n_inducing_rows: Any, jitter: float, rng: np.random.Generator, separable: bool
) -> OutputLayer:
    """Return the regime before training; inducing rows start at rows of the data.

    `separable` says that the prior lets functions come apart that are alike.
    """
    if regime == "exact":
        return Exact()
    num_rows, num_functions = len(problem.x), problem.num_functions
    asked = n_inducing_rows if is_whole(n_inducing_rows) else None
    if asked is not None and asked > num_rows:
        raise ValueError(
            f"n_inducing_rows: expected at most the {num_rows} rows of the data (equal ones are one); got {asked}. "
            "Give fewer, or 'auto'."
        )
    if regime == "inducing_rows":
        chosen = _chosen_rows(problem, int(asked or min(NUM_INDUCING_ROWS, num_rows)), rng)
        return InducingRows(problem.x_unit[chosen], None, jitter)
    usual = NUM_INDUCING_ROWS if isinstance(problem.likelihood, Gaussian) else NUM_PSEUDO_ROWS
    most = (MOST_PSEUDO if num_rows <= FEW_ROWS else MOST_PSEUDO_OF_MANY) // num_functions
    # a precision for each function has the higher bound (3 to 5 nats on 100 rows of four classes), one for each row
    # lets functions that are alike come apart, so that there may be any number of them
    come_apart = separable and problem.likelihood.has_like_functions
    alike = come_apart and (num_rows > FEW_ROWS or min(asked or LEAST_PSEUDO_ROWS, num_rows) > most)
    usual = min(usual, num_rows) if alike else max(1, min(usual, num_rows, most))
    chosen = _chosen_rows(problem, int(asked or usual), rng)
    targets = problem.likelihood.functions_at(problem.targets[chosen], num_functions)
    return PseudoObservations.initial(problem.x_unit[chosen], np.asarray(targets, np.float64), alike=alike)


def _chosen_rows(problem: Problem, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return rows at random; where there are classes, as many of each as far as they go."""
    order = rng.permutation(len(problem.x))
    if isinstance(problem.likelihood, Gaussian) or problem.num_functions == 1:
        return order[:count]
    labels = problem.targets[order, 0]
    turn = np.empty(len(order))
    for label in np.unique(labels):
        turn[labels == label] = np.arange(np.sum(labels == label))
    return order[np.argsort(turn, kind="stable")[:count]]
