"""Decisions: loops that choose what to observe next, learn from what was observed, and choose again.

`PoolLoop` asks for rows of a pool (active learning), `Optimiser` for points of a box (Bayesian optimisation), and
`Bandit` for an arm given a context. Every one is a `Loop`, with `ask`, `tell`, `history`, `run`, `path` and `load`.
A loop whose file another loop has changed raises a `ChangedFileError`.
"""

from metaprior.decisions.active import (
    Choice,
    PoolLoop,
    Question,
    choose,
    entropy,
    greedy_classes,
    greedy_covariance,
    mutual_information,
    prediction_information,
    variance,
)
from metaprior.decisions.bandit import POLICIES, Bandit, Environment, PendingRounds, default_reward_model
from metaprior.decisions.base import Loop
from metaprior.decisions.files import ChangedFileError
from metaprior.decisions.optimise import ACQUISITIONS, Box, Optimiser, default_surrogate, minimise

__all__ = [
    "ACQUISITIONS",
    "POLICIES",
    "Bandit",
    "Box",
    "ChangedFileError",
    "Choice",
    "Environment",
    "Loop",
    "Optimiser",
    "PendingRounds",
    "PoolLoop",
    "Question",
    "choose",
    "default_reward_model",
    "default_surrogate",
    "entropy",
    "greedy_classes",
    "greedy_covariance",
    "minimise",
    "mutual_information",
    "prediction_information",
    "variance",
]
