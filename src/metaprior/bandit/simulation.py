"""A bandit against a problem whose truth is known: what a policy costs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from metaprior.bandit.loop import Bandit
from metaprior.estimators.progress import new_bar

if TYPE_CHECKING:
    import pandas as pd


class Problem(Protocol):
    """What rounds bring. Everything is a function of the round, so that all policies meet the same."""

    def contexts(self, rounds: np.ndarray) -> np.ndarray:
        """Return the contexts, [n, features]."""

    def expected(self, rounds: np.ndarray) -> np.ndarray:
        """Return the expected reward of every arm, [n, arms]."""

    def rewards(self, rounds: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return the rewards of chosen arms, [n]."""


def simulate(bandit: Bandit, problem: Problem, num_rounds: int, *, verbose: bool = False) -> "pd.DataFrame":
    """Play until `num_rounds` rounds are told, counting those that are, and return the history.

    Rounds between two fits are asked about together: nothing is learned in between. The regret of a round is the
    expected reward of the best arm less that of the chosen one.

    Parameters
    ----------
    bandit : Bandit
        It may come from a file; rounds that wait are told first.
    problem : Problem
    num_rounds : int
    verbose : bool, default=False
        Show a progress bar on stderr.

    Returns
    -------
    pandas.DataFrame
        `bandit.history()`.
    """
    with _progress(verbose, num_rounds) as advance:
        while bandit.num_rounds < num_rounds:
            waiting, start = len(bandit.waiting[1]), bandit.num_rounds
            to_next_fit = bandit.refit_every - start % bandit.refit_every
            rounds = start + np.arange(waiting or min(to_next_fit, num_rounds - start))
            arms = bandit.ask(problem.contexts(rounds))
            expected = problem.expected(rounds)
            regrets = expected.max(axis=1) - expected[np.arange(len(arms)), arms]
            bandit.tell(problem.rewards(rounds, arms), regrets)
            advance(bandit)
    return bandit.history()


@contextmanager
def _progress(verbose: bool, total: int) -> Iterator[Any]:
    """Yield a function that is told of the bandit; it draws a bar, or nothing when silent."""
    if not verbose:
        yield lambda bandit: None
        return
    with new_bar() as bar:
        task = bar.add_task("", total=total)
        yield lambda bandit: bar.update(
            task, completed=bandit.num_rounds, description=f"regret {np.sum(bandit.regrets):.0f}"
        )
