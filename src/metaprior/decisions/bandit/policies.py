"""Policies: a score for every arm at every context; the arm with the highest is chosen.

A model of rewards knows an arm by its one-hot code beside the context. Thompson sampling draws one function a context
and scores all arms by it: what the draw believes of one arm goes with what it believes of the others. A draw may be
moved towards the mean (`spread` below 1): the usual remedy where a posterior is so wide that it explores for too long
(Chapelle and Li, 2011, "An Empirical Evaluation of Thompson Sampling"), as variational ones of this library are where
there are data (docs/faithfulness.md).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

#: Contexts that are decided in one call, each by a draw of its own: a call computes contexts x draws.
CONTEXTS_AT_ONCE = 64

#: From a fitted model, contexts, the number of arms and a generator to scores [contexts, arms].
Policy = Callable[[Any, np.ndarray, int, np.random.Generator], np.ndarray]


def model_rows(contexts: np.ndarray, arms: np.ndarray, n_arms: int) -> np.ndarray:
    """Return what the model sees: every context and, one-hot, its arm."""
    return np.hstack([contexts, np.eye(n_arms)[arms]])


def all_rows(contexts: np.ndarray, n_arms: int) -> np.ndarray:
    """Return the rows of every context with every arm, [contexts * arms, features]; arms run fastest."""
    count = len(contexts)
    return model_rows(np.repeat(contexts, n_arms, axis=0), np.tile(np.arange(n_arms), count), n_arms)


def thompson(spread: float) -> Policy:
    """Return the policy that goes by drawn functions, a new one for every context: mean + spread (draw - mean)."""

    def scores(model: Any, contexts: np.ndarray, n_arms: int, rng: np.random.Generator) -> np.ndarray:
        drawn = _drawn(model, contexts, n_arms, rng)
        if spread == 1:
            return drawn
        mean = greedy(model, contexts, n_arms, rng)
        return mean + spread * (drawn - mean)

    return scores


def _drawn(model: Any, contexts: np.ndarray, n_arms: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rewards that drawn functions promise, [contexts, arms]."""
    parts = []
    for start in range(0, len(contexts), CONTEXTS_AT_ONCE):
        some = contexts[start : start + CONTEXTS_AT_ONCE]
        num_draws = 1 << (len(some) - 1).bit_length()  # every number of draws is another program: powers of two
        seed, each = int(rng.integers(2**31 - 1)), np.arange(len(some))
        draws = np.asarray(model.sample_y(all_rows(some, n_arms), n_samples=num_draws, random_state=seed))
        parts.append(draws.reshape(len(some), n_arms, num_draws)[each, :, each])
    return np.concatenate(parts)


def greedy(model: Any, contexts: np.ndarray, n_arms: int, rng: np.random.Generator) -> np.ndarray:
    """Return the expected rewards."""
    return np.asarray(model.predict(all_rows(contexts, n_arms))).reshape(len(contexts), n_arms)


def uniform(model: Any, contexts: np.ndarray, n_arms: int, rng: np.random.Generator) -> np.ndarray:
    """Return random scores: any arm, whatever the context."""
    return rng.uniform(size=(len(contexts), n_arms))


def epsilon_greedy(epsilon: float) -> Policy:
    """Return the policy that is greedy, but uniform in a part `epsilon` of the rounds."""

    def scores(model: Any, contexts: np.ndarray, n_arms: int, rng: np.random.Generator) -> np.ndarray:
        explores = rng.uniform(size=(len(contexts), 1)) < epsilon
        return np.where(explores, uniform(model, contexts, n_arms, rng), greedy(model, contexts, n_arms, rng))

    return scores


#: The policies by name, for given settings: the part of random rounds, and how wide draws are.
POLICIES: dict[str, Callable[[float, float], Policy]] = {
    "thompson": lambda epsilon, spread: thompson(spread),
    "greedy": lambda epsilon, spread: greedy,
    "epsilon_greedy": lambda epsilon, spread: epsilon_greedy(epsilon),
    "uniform": lambda epsilon, spread: uniform,
}
