"""Architectures: which units each weight connects, and how activations are computed."""

from metaprior.networks.activations import activation_named
from metaprior.networks.base import Layer, Network, WeightLayer
from metaprior.networks.dense import Dense

__all__ = ["Dense", "Layer", "Network", "WeightLayer", "activation_named"]
