"""The rounds of a bandit: the contexts, the chosen arms and their rewards.

They are never changed. Every method returns new ones, so a call that raises an error leaves the loop as it was.
"""

import dataclasses
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from metaprior.decisions.content import checked_fields, checked_indices, checked_numbers

#: The fields that have a row per round.
_CONTEXTS = ("contexts", "pending_contexts")


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

    @classmethod
    def checked(cls, content: Any, n_arms: int) -> "Rounds":
        """Return the rounds that a file contains, or raise an error if they are not ones with so many arms."""
        fields = checked_fields("state", content, [field.name for field in dataclasses.fields(cls)])
        contexts, pending = (checked_numbers(name, fields[name], (None, None)) for name in _CONTEXTS)
        n_rounds, n_pending = len(contexts), len(pending)
        if n_rounds and n_pending:
            checked_numbers("pending_contexts", pending, (n_pending, contexts.shape[1]))
        return cls(
            contexts,
            checked_indices("arms", fields["arms"], n_arms, (n_rounds,)),
            checked_numbers("rewards", fields["rewards"], (n_rounds,)),
            checked_numbers("regrets", fields["regrets"], (n_rounds,), gaps=True),
            pending,
            checked_indices("pending_arms", fields["pending_arms"], n_arms, (n_pending,)),
        )

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
