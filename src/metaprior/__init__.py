"""metaprior: Bayesian neural networks whose weight prior is a Gaussian process.

JAX, scikit-learn and plotting are imported when a name that needs them is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from metaprior.version import __version__ as __version__

if TYPE_CHECKING:
    from metaprior import (
        baselines,
        bridges,
        conformal,
        datasets,
        decisions,
        diagnosis,
        estimators,
        inference,
        inputs,
        io,
        kernels,
        likelihoods,
        metrics,
        multitask,
        networks,
        output_layer,
        plots,
        predictive,
        prior,
        tables,
        weight_gp,
        weights,
    )
    from metaprior.comparison import compare
    from metaprior.diagnosis import diagnose
    from metaprior.estimators import MetaGPClassifier, MetaGPRegressor, relevance
    from metaprior.inputs import Projection
    from metaprior.io.saving import load
    from metaprior.model import Model
    from metaprior.predictive import Predictive

__all__ = [
    "MetaGPClassifier",
    "MetaGPRegressor",
    "Model",
    "Predictive",
    "Projection",
    "baselines",
    "bridges",
    "compare",
    "conformal",
    "datasets",
    "decisions",
    "diagnose",
    "diagnosis",
    "estimators",
    "inference",
    "inputs",
    "io",
    "kernels",
    "likelihoods",
    "load",
    "metrics",
    "multitask",
    "networks",
    "output_layer",
    "plots",
    "predictive",
    "prior",
    "relevance",
    "tables",
    "weight_gp",
    "weights",
]

#: Where classes and functions are defined; every other public name is a subpackage or a module.
_HOMES = {
    "MetaGPClassifier": "metaprior.estimators",
    "MetaGPRegressor": "metaprior.estimators",
    "Model": "metaprior.model",
    "Predictive": "metaprior.predictive",
    "Projection": "metaprior.inputs",
    "compare": "metaprior.comparison",
    "diagnose": "metaprior.diagnosis",
    "load": "metaprior.io.saving",
    "relevance": "metaprior.estimators",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in __all__:
        return importlib.import_module(f"metaprior.{name}")
    raise AttributeError(f"module 'metaprior' has no attribute {name!r}; it has {__all__}.")


def __dir__() -> list[str]:
    return __all__
