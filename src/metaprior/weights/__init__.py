"""Weight models: where the weights of a network come from, one per file, behind one small interface."""

from metaprior.weights.base import PreparedWeights, WeightDraw, WeightModel
from metaprior.weights.deep_kernel import DeepKernel
from metaprior.weights.hierarchical import HierarchicalMetaGP
from metaprior.weights.laplace import Laplace
from metaprior.weights.mean_field import MeanField
from metaprior.weights.metagp import MetaGP
from metaprior.weights.metann import MetaNN
from metaprior.weights.mixed import Mixed, metagp_of
from metaprior.weights.point import Point
from metaprior.weights.start import MetaGPSpec, initial_metagp, initial_mixed

__all__ = [
    "DeepKernel",
    "HierarchicalMetaGP",
    "Laplace",
    "MeanField",
    "MetaGP",
    "MetaGPSpec",
    "MetaNN",
    "Mixed",
    "Point",
    "PreparedWeights",
    "WeightDraw",
    "WeightModel",
    "initial_metagp",
    "initial_mixed",
    "metagp_of",
]
