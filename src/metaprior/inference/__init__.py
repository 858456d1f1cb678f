"""Inference: the ELBO, the recipe and the compiled training loop."""

from metaprior.inference.elbo import Batch, elbo, elbo_terms
from metaprior.inference.recipe import Recipe
from metaprior.inference.training import (
    ADAM,
    ConvergenceTrouble,
    Data,
    Draws,
    Fit,
    Progress,
    make_data,
    train,
)

__all__ = [
    "ADAM",
    "Batch",
    "ConvergenceTrouble",
    "Data",
    "Draws",
    "Fit",
    "Progress",
    "Recipe",
    "elbo",
    "elbo_terms",
    "make_data",
    "train",
]
