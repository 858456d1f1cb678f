"""An environment: a simulation of the rounds of a bandit, in which the expected rewards are known."""

from typing import Protocol

import numpy as np


class Environment(Protocol):
    """A simulation of rounds. Everything is a function of the round's number, so all policies meet the same rounds."""

    def contexts(self, rounds: np.ndarray) -> np.ndarray:
        """Return the contexts, [n, n_features]."""

    def expected(self, rounds: np.ndarray) -> np.ndarray:
        """Return the expected reward of every arm, [n, n_arms]."""

    def rewards(self, rounds: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return the rewards of the chosen arms, [n]."""
