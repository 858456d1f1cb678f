"""The rounds of a bandit: which contexts came, which arms were chosen, and what these gave.

They are never changed: every method returns new ones, so that a call that is refused leaves the loop as it was.
"""

from dataclasses import dataclass, field, replace

import numpy as np


def _no_contexts() -> np.ndarray:
    return np.empty((0, 0))


def _no_arms() -> np.ndarray:
    return np.empty(0, int)


def _no_numbers() -> np.ndarray:
    return np.empty(0)


@dataclass(frozen=True)
class Rounds:
    """Rounds whose rewards were told, and those whose rewards are pending.

    Parameters
    ----------
    contexts, arms, rewards, regrets : ndarray of shape (n, n_features), (n,), (n,), (n,)
        The rounds that are over; a regret that nobody knows is NaN.
    pending_contexts, pending_arms : ndarray of shape (n_pending, n_features), (n_pending,)
        The rounds that wait for their rewards.
    """

    contexts: np.ndarray = field(default_factory=_no_contexts)
    arms: np.ndarray = field(default_factory=_no_arms)
    rewards: np.ndarray = field(default_factory=_no_numbers)
    regrets: np.ndarray = field(default_factory=_no_numbers)
    pending_contexts: np.ndarray = field(default_factory=_no_contexts)
    pending_arms: np.ndarray = field(default_factory=_no_arms)

    def with_choices(self, contexts: np.ndarray, arms: np.ndarray) -> "Rounds":
        """Return them with new rounds, whose arms are chosen."""
        return replace(self, pending_contexts=contexts, pending_arms=arms)

    def with_rewards(self, rewards: np.ndarray, regrets: np.ndarray) -> "Rounds":
        """Return them with the pending rounds over."""
        contexts = self.pending_contexts
        return Rounds(
            contexts if not len(self.rewards) else np.vstack([self.contexts, contexts]),
            np.append(self.arms, self.pending_arms),
            np.append(self.rewards, rewards),
            np.append(self.regrets, regrets),
            np.empty((0, contexts.shape[1])),
            _no_arms(),
        )
