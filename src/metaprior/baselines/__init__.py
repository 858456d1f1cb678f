"""Other methods with the same interface, to compare a Gaussian-process weight prior with. One method per file."""

from metaprior.baselines.dkl import DKLClassifier, DKLRegressor
from metaprior.baselines.ensemble import EnsembleClassifier, EnsembleRegressor
from metaprior.baselines.exact_gp import ExactGPRegressor
from metaprior.baselines.hmc import HMCClassifier, HMCRegressor
from metaprior.baselines.laplace import LaplaceClassifier, LaplaceRegressor
from metaprior.baselines.map import MAPClassifier, MAPRegressor
from metaprior.baselines.metann import MetaNNClassifier, MetaNNRegressor
from metaprior.baselines.mfvi import MFVIClassifier, MFVIRegressor

__all__ = [
    "DKLClassifier",
    "DKLRegressor",
    "EnsembleClassifier",
    "EnsembleRegressor",
    "ExactGPRegressor",
    "HMCClassifier",
    "HMCRegressor",
    "LaplaceClassifier",
    "LaplaceRegressor",
    "MAPClassifier",
    "MAPRegressor",
    "MFVIClassifier",
    "MFVIRegressor",
    "MetaNNClassifier",
    "MetaNNRegressor",
]
