"""Data: the toy problems of the paper, as functions of a seed."""

from metaprior.datasets.toy import Split, four_class, sinusoid

__all__ = ["Split", "four_class", "sinusoid"]
