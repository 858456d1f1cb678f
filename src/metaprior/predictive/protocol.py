"""What any predictive distribution can be asked: the scores, comparisons and active learning ask nothing else."""

from typing import Protocol

import numpy as np


class PredictiveDistribution(Protocol):
    """The distribution of the targets at given inputs, with one row per input.

    Every `Predictive` is one, and so are the distributions that `predictive.from_sklearn` makes of the predictions of
    other scikit-learn estimators. Classes have no `cdf` and no `crps`, other targets have no `probabilities` and no
    `classes`: asking for them raises an AttributeError.
    """

    @property
    def is_classification(self) -> bool:
        """Whether the targets are classes."""

    @property
    def mean(self) -> np.ndarray:
        """E[y | x]; class probabilities for a classifier."""

    @property
    def variance(self) -> np.ndarray:
        """Var[y | x]; p (1 - p) of every class for a classifier."""

    @property
    def probabilities(self) -> np.ndarray:
        """Class probabilities, [N, C]."""

    @property
    def classes(self) -> np.ndarray:
        """The labels of the classes, in the order of the columns of `probabilities`."""

    @property
    def entropy(self) -> np.ndarray:
        """H[y | x], [N]."""

    def log_prob(self, y: np.ndarray) -> np.ndarray:
        """Return the log density of targets, of all outputs together, or the log probability of labels, [N]."""

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """Return P(Y <= y), one output at a time."""

    def crps(self, y: np.ndarray) -> np.ndarray:
        """Return the continuous ranked probability score, one output at a time."""
