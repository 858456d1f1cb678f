"""The integrated output layer: regimes that compute the bound and the posterior of the network's outputs."""

from metaprior.output_layer.base import ConditionedGP, FunctionGP, ObservedRows, OutputLayer
from metaprior.output_layer.exact import Exact
from metaprior.output_layer.inducing_rows import InducedRows, InducingRows
from metaprior.output_layer.pseudo_observations import PseudoObservations

__all__ = [
    "ConditionedGP",
    "Exact",
    "FunctionGP",
    "InducedRows",
    "InducingRows",
    "ObservedRows",
    "OutputLayer",
    "PseudoObservations",
]
