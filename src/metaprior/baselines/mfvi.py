"""BNN-MFVI: the usual Bayesian network. Unit-normal prior, an independent Gaussian for every weight."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from metaprior.baselines.map import NormalPriorEstimator
from metaprior.baselines.measured_noise import MeasuredNoisePart
from metaprior.estimators.base import Problem, VariationalEstimator
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.renamed import accepts_old_names
from metaprior.networks import Dense
from metaprior.weights import MeanField, WeightModel


@dataclass(eq=False, repr=False)
class MFVIEstimator(NormalPriorEstimator, VariationalEstimator):
    """The machinery of both estimators; see `MFVIRegressor`."""

    _: KW_ONLY

    def _initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        return MeanField.initial(network, rng, float(self.prior_scale))


@accepts_old_names
@dataclass(eq=False, repr=False)
class MFVIRegressor(MeasuredNoisePart, MFVIEstimator):
    """Regression by a Bayesian network with a mean-field Gaussian posterior.

    Training draws pre-activations (local reparameterisation), prediction draws weights. Parameters that are not named
    here are those of `metaprior.MetaGPRegressor`.

    Parameters
    ----------
    prior_scale : float, default=1.0
        Standard deviation of the prior of every weight, inputs and targets being standardised.
    noise_hold : float, default=None
        The part of training for which a learned noise level is held at its start, half of what neighbouring rows
        differ by; None: 0.8.
    """


@accepts_old_names
@dataclass(eq=False, repr=False)
class MFVIClassifier(ClassifierPart, MFVIEstimator):
    """Classification by a Bayesian network with a mean-field Gaussian posterior; see `MFVIRegressor`."""
