"""Compositional search: which sum of products of simple kernels says most about the data, and what it says in words.

It is part of the kernels: it needs formulas of kernels, their evidence under Gaussian noise, and the periods of the
data, and nothing of networks or estimators. It computes in NumPy and SciPy, because every candidate would be another
program for JAX to compile; the tests hold its formulas against those of the kernels.
"""

from metaprior.kernels.composition.found import Component, FoundKernel
from metaprior.kernels.composition.greedy_search import search

__all__ = ["Component", "FoundKernel", "search"]
