"""MAP: a plain network, its weights a point estimate under a Gaussian prior. What everybody starts from."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from metaprior.estimators.base import Problem, TrainedEstimator
from metaprior.estimators.checks import expect, is_number
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.regressor import RegressorPart
from metaprior.networks import Dense
from metaprior.weights import Point, WeightModel


@dataclass(eq=False, repr=False)
class NormalPriorEstimator(TrainedEstimator):
    """A network whose weights have the prior N(0, prior_scale^2)."""

    _: KW_ONLY
    prior_scale: float = 1.0
    learning_rate_init: float = 0.01

    def _check_parameters(self) -> None:
        super()._check_parameters()
        scale = self.prior_scale
        expect("prior_scale", scale, "a positive number", is_number(scale) and scale > 0)


@dataclass(eq=False, repr=False)
class MAPEstimator(NormalPriorEstimator):
    """The machinery of both estimators; see `MAPRegressor`."""

    def _initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        return Point.initial(network, rng, float(self.prior_scale))


@dataclass(eq=False, repr=False)
class MAPRegressor(RegressorPart, MAPEstimator):
    """Regression by a network with point weights under a Gaussian prior.

    Its uncertainty is the observation noise alone: epistemic variance and mutual information are 0. Parameters that
    are not named here are those of `metaprior.MetaGPRegressor`.

    Parameters
    ----------
    prior_scale : float, default=1.0
        Standard deviation of the prior of every weight, inputs and targets being standardised.
    """


@dataclass(eq=False, repr=False)
class MAPClassifier(ClassifierPart, MAPEstimator):
    """Classification by a network with point weights under a Gaussian prior; see `MAPRegressor`."""
