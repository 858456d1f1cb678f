"""Moved to `metaprior.decisions.bandit`; this path goes with the next release."""

from typing import TYPE_CHECKING, Any

from metaprior.decisions.old_paths import moved
from metaprior.user_warnings import warn_user

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["simulate"]

__getattr__ = moved(__name__, "metaprior.decisions.bandit")


def simulate(bandit: Any, problem: Any, num_rounds: int, *, verbose: bool = False) -> "pd.DataFrame":
    """Return the history after `bandit.run(problem, num_rounds)`, which takes the place of this function."""
    warn_user("simulate(bandit, ...) is now bandit.run(...).history.", DeprecationWarning)
    return bandit.run(problem, num_rounds, verbose=verbose).history
