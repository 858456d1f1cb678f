"""Weight models: where the weights of a network come from, one a file, behind one small interface."""

from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel
from metaprior.weights.metagp import MetaGP
from metaprior.weights.start import MetaGPSpec, initial_metagp

__all__ = ["MetaGP", "MetaGPSpec", "PreparedWeights", "WeightDraw", "WeightModel", "initial_metagp"]
