"""Moved to `metaprior.decisions.bandit`; this path goes with the next release."""

import warnings
from typing import TYPE_CHECKING, Any

from metaprior.decisions.old_paths import moved

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["simulate"]

__getattr__ = moved(__name__, "metaprior.decisions.bandit")


def simulate(bandit: Any, problem: Any, num_rounds: int, *, verbose: bool = False) -> "pd.DataFrame":
    """Return the history after `bandit.run(problem, num_rounds)`, which takes the place of this function."""
    warnings.warn("simulate(bandit, ...) is now bandit.run(...).history.", DeprecationWarning, stacklevel=2)
    return bandit.run(problem, num_rounds, verbose=verbose).history
