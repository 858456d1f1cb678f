"""Inference: the ELBO, the recipe and the compiled training loop."""

from metaprior.inference.data import Data, StepConfig, make_data
from metaprior.inference.devices import row_mesh
from metaprior.inference.elbo import Batch, elbo, elbo_terms
from metaprior.inference.identity import Identity
from metaprior.inference.recipe import ALL_AT_ONCE, Recipe, Settling
from metaprior.inference.rules import History, StopRule
from metaprior.inference.runs import ConvergenceTrouble, Fit, Progress, report_jitter
from metaprior.inference.snapshots import CheckpointStore, Snapshot
from metaprior.inference.steps import ADAM
from metaprior.inference.training import train, train_many

__all__ = [
    "ADAM",
    "ALL_AT_ONCE",
    "Batch",
    "CheckpointStore",
    "ConvergenceTrouble",
    "Data",
    "Fit",
    "History",
    "Identity",
    "Progress",
    "Recipe",
    "Settling",
    "Snapshot",
    "StepConfig",
    "StopRule",
    "elbo",
    "elbo_terms",
    "make_data",
    "report_jitter",
    "row_mesh",
    "train",
    "train_many",
]
