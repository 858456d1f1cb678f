"""Eat it or leave it: the mushroom bandit.

Leaving gives 0. Eating an edible mushroom gives 5, and eating a poisonous one 5 or -35, each with probability one
half. The oracle knows which mushrooms are edible, eats those and leaves the others.
"""

from typing import Any

import numpy as np

#: The arms.
LEAVE, EAT = 0, 1
#: The good and the bad reward of eating, and the probability that a poisonous mushroom harms.
GOOD, BAD, HARM_PROBABILITY = 5.0, -35.0, 0.5


class Mushrooms:
    """A stream of mushrooms: which one comes, and what eating it would do, depends only on the seed and the round.

    Parameters
    ----------
    X : array-like of shape (n, features)
        Properties, such as those of `metaprior_reproduction.datasets.mushroom()`.
    poisonous : array-like of shape (n,)
        0 edible, 1 poisonous.
    random_state : int, default=0
    """

    num_arms = 2

    def __init__(self, X: Any, poisonous: Any, *, random_state: int = 0) -> None:
        self.X, self.poisonous = np.asarray(X), np.asarray(poisonous).astype(bool)
        if self.X.ndim != 2 or self.poisonous.shape != (len(self.X),):
            raise ValueError(
                f"Mushrooms: expected a table and one number per row; got shapes {self.X.shape} and "
                f"{self.poisonous.shape}."
            )
        self.random_state = random_state

    def _dice(self, rounds: np.ndarray) -> np.ndarray:
        """Return two uniform numbers per round: which mushroom comes, and whether it would harm."""
        return np.array([np.random.default_rng([self.random_state, int(t)]).uniform(size=2) for t in rounds])

    def _rows(self, rounds: np.ndarray) -> np.ndarray:
        return (self._dice(rounds)[:, 0] * len(self.X)).astype(int)

    def contexts(self, rounds: np.ndarray) -> np.ndarray:
        """Return the properties of the rounds' mushrooms."""
        return self.X[self._rows(rounds)].astype(np.float64)

    def expected(self, rounds: np.ndarray) -> np.ndarray:
        """Return the expected reward of every arm, [n, 2]."""
        risky = GOOD + HARM_PROBABILITY * (BAD - GOOD)
        eaten = np.where(self.poisonous[self._rows(rounds)], risky, GOOD)
        return np.stack([np.zeros(len(eaten)), eaten], axis=1)

    def rewards(self, rounds: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return what the chosen arms give."""
        harmed = self.poisonous[self._rows(rounds)] & (self._dice(rounds)[:, 1] < HARM_PROBABILITY)
        return np.where(np.asarray(arms) == EAT, np.where(harmed, BAD, GOOD), 0.0)
