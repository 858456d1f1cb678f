"""Policies: they score every arm for every context, and the arm with the highest score is chosen.

The reward model sees the context and the one-hot arm. Thompson sampling draws one function per context and scores all
arms by it, so the scores of the arms are consistent with each other. A draw can be moved towards the mean (`spread`
below 1). This is the usual remedy if a posterior is so wide that it explores for too long (Chapelle and Li, 2011, "An
Empirical Evaluation of Thompson Sampling"), as the variational posteriors of this library are where there are data
(docs/faithfulness.md).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

#: The most contexts in one call. Each has its own draw, and a call computes every draw at every context.
CONTEXTS_AT_ONCE = 64

#: A function from a fitted model, contexts, the number of arms and a generator to scores [contexts, arms].
Policy = Callable[[Any, np.ndarray, int, np.random.Generator], np.ndarray]


def model_rows(contexts: np.ndarray, arms: np.ndarray, n_arms: int) -> np.ndarray:
    """Return the inputs of the model: every context with its one-hot arm."""
    return np.hstack([contexts, np.eye(n_arms)[arms]])


def all_rows(contexts: np.ndarray, n_arms: int) -> np.ndarray:
    """Return the inputs for every context with every arm, [contexts * arms, features]. Arms vary fastest."""
    count = len(contexts)
    return model_rows(np.repeat(contexts, n_arms, axis=0), np.tile(np.arange(n_arms), count), n_arms)


def thompson(spread: float) -> Policy:
    """Return the policy whose scores are mean + spread (draw - mean), with a new draw for every context."""

    def scores(model: Any, contexts: np.ndarray, n_arms: int, rng: np.random.Generator) -> np.ndarray:
        drawn = _drawn(model, contexts, n_arms, rng)
        if spread == 1:
            return drawn
        mean = greedy(model, contexts, n_arms, rng)
        return mean + spread * (drawn - mean)

    return scores


def _drawn(model: Any, contexts: np.ndarray, n_arms: int, rng: np.random.Generator) -> np.ndarray:
    """Return the rewards under drawn functions, one draw per context, [contexts, arms]."""
    parts = []
    for start in range(0, len(contexts), CONTEXTS_AT_ONCE):
        some = contexts[start : start + CONTEXTS_AT_ONCE]
        num_draws = 1 << (len(some) - 1).bit_length()  # a power of two: every number needs its own program
        seed, each = int(rng.integers(2**31 - 1)), np.arange(len(some))
        draws = np.asarray(model.sample_y(all_rows(some, n_arms), n_samples=num_draws, random_state=seed))
        parts.append(draws.reshape(len(some), n_arms, num_draws)[each, :, each])
    return np.concatenate(parts)


def greedy(model: Any, contexts: np.ndarray, n_arms: int, rng: np.random.Generator) -> np.ndarray:
    """Return the expected rewards."""
    return np.asarray(model.predict(all_rows(contexts, n_arms))).reshape(len(contexts), n_arms)


def uniform(model: Any, contexts: np.ndarray, n_arms: int, rng: np.random.Generator) -> np.ndarray:
    """Return random scores, which choose any arm with the same probability."""
    return rng.uniform(size=(len(contexts), n_arms))


def epsilon_greedy(epsilon: float) -> Policy:
    """Return the policy that is uniform in a fraction `epsilon` of the rounds, and greedy in the others."""

    def scores(model: Any, contexts: np.ndarray, n_arms: int, rng: np.random.Generator) -> np.ndarray:
        explores = rng.uniform(size=(len(contexts), 1)) < epsilon
        return np.where(explores, uniform(model, contexts, n_arms, rng), greedy(model, contexts, n_arms, rng))

    return scores


#: The policies by name, as functions of `epsilon` and `spread`.
POLICIES: dict[str, Callable[[float, float], Policy]] = {
    "thompson": lambda epsilon, spread: thompson(spread),
    "greedy": lambda epsilon, spread: greedy,
    "epsilon_greedy": lambda epsilon, spread: epsilon_greedy(epsilon),
    "uniform": lambda epsilon, spread: uniform,
}
