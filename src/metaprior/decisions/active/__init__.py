"""Active learning: choose which rows of a pool to label next, and the loop that asks for them."""

from metaprior.decisions.active.acquisition import (
    choose,
    entropy,
    mutual_information,
    prediction_information,
    variance,
)
from metaprior.decisions.active.batch import Choice, greedy_classes, greedy_covariance
from metaprior.decisions.active.loop import PoolLoop, Question

__all__ = [
    "Choice",
    "PoolLoop",
    "Question",
    "choose",
    "entropy",
    "greedy_classes",
    "greedy_covariance",
    "mutual_information",
    "prediction_information",
    "variance",
]
