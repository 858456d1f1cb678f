"""An environment: what the rounds of a bandit bring, where the truth is known, as in a simulation."""

from typing import Protocol

import numpy as np


class Environment(Protocol):
    """What rounds bring. Everything is a function of the round's number, so that all policies meet the same."""

    def contexts(self, rounds: np.ndarray) -> np.ndarray:
        """Return the contexts, [n, n_features]."""

    def expected(self, rounds: np.ndarray) -> np.ndarray:
        """Return the expected reward of every arm, [n, n_arms]."""

    def rewards(self, rounds: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return the rewards of chosen arms, [n]."""
