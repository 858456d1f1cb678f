"""MetaNN: the paper's forerunner, where a small network and not a GP maps the code of a weight to the weight."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from metaprior.baselines.measured_noise import MeasuredNoisePart
from metaprior.estimators.base import Problem, VariationalEstimator
from metaprior.estimators.checks import expect
from metaprior.estimators.classifier import ClassifierPart
from metaprior.estimators.renamed import accepts_old_names
from metaprior.networks import Dense
from metaprior.weights import MetaNN, WeightModel

#: How a weight varies given its code.
NOISES = ("gaussian", "implicit")


@dataclass(eq=False, repr=False)
class MetaNNEstimator(VariationalEstimator):
    """The machinery of both estimators; see `MetaNNRegressor`."""

    _: KW_ONLY
    latent_dim: int = 2
    mapping_units: int = 64
    weight_noise: str = "gaussian"
    learning_rate_init: float = 0.01

    def _initial_weights(self, network: Dense, problem: Problem, rng: np.random.Generator) -> WeightModel:
        implicit = self.weight_noise == "implicit"
        return MetaNN.initial(network, int(self.latent_dim), int(self.mapping_units), rng, implicit=implicit)

    def _whole_numbers(self) -> list[tuple[str, int]]:
        return [*super()._whole_numbers(), ("latent_dim", 1), ("mapping_units", 1)]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        noise = self.weight_noise
        expect("weight_noise", noise, f"one of {NOISES}", isinstance(noise, str) and noise in NOISES)


@accepts_old_names
@dataclass(eq=False, repr=False)
class MetaNNRegressor(MeasuredNoisePart, MetaNNEstimator):
    """Regression by a network whose weights come from a small network on their codes.

    Parameters that are not named here are those of `metaprior.MetaGPRegressor`.

    Parameters
    ----------
    latent_dim : int, default=2
        Size of each unit's latent vector.
    mapping_units : int, default=64
        Hidden units of the mapping from code to weight.
    weight_noise : {"gaussian", "implicit"}, default="gaussian"
        Whether a weight given its code is Gaussian, or the mapping has a noise input of its own.
    noise_hold : float, default=None
        As for `MFVIRegressor`.
    """


@accepts_old_names
@dataclass(eq=False, repr=False)
class MetaNNClassifier(ClassifierPart, MetaNNEstimator):
    """Classification by a network whose weights come from a small network on their codes; see `MetaNNRegressor`."""
