"""The rounds of a bandit: the contexts, the chosen arms and their rewards.

They are never changed. Every method returns new ones, so a call that raises an error leaves the loop as it was.
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
        The finished rounds. An unknown regret is NaN.
    pending_contexts, pending_arms : ndarray of shape (n_pending, n_features), (n_pending,)
        The rounds whose rewards are pending.
    """

    contexts: np.ndarray = field(default_factory=_no_contexts)
    arms: np.ndarray = field(default_factory=_no_arms)
    rewards: np.ndarray = field(default_factory=_no_numbers)
    regrets: np.ndarray = field(default_factory=_no_numbers)
    pending_contexts: np.ndarray = field(default_factory=_no_contexts)
    pending_arms: np.ndarray = field(default_factory=_no_arms)

    def with_choices(self, contexts: np.ndarray, arms: np.ndarray) -> "Rounds":
        """Return the rounds with new pending ones."""
        return replace(self, pending_contexts=contexts, pending_arms=arms)

    def with_rewards(self, rewards: np.ndarray, regrets: np.ndarray) -> "Rounds":
        """Return the rounds with the pending ones finished."""
        contexts = self.pending_contexts
        return Rounds(
            contexts if not len(self.rewards) else np.vstack([self.contexts, contexts]),
            np.append(self.arms, self.pending_arms),
            np.append(self.rewards, rewards),
            np.append(self.regrets, regrets),
            np.empty((0, contexts.shape[1])),
            _no_arms(),
        )
