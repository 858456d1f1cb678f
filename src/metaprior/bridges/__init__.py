"""Bridges to other libraries: their interfaces around the estimators of this one.

Each needs its library, which is imported when a name is first used. The libraries are extras, installed from a
clone by `pip install ".[botorch]"`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from metaprior.extras import missing_library

if TYPE_CHECKING:
    from metaprior.bridges.activeml import PredictiveSampling
    from metaprior.bridges.arviz import to_arviz
    from metaprior.bridges.botorch import BoTorchModel
    from metaprior.bridges.skpro import SkproRegressor

__all__ = ["BoTorchModel", "PredictiveSampling", "SkproRegressor", "to_arviz"]

#: The module of every name (the extra has the same name), and the libraries that it needs.
_HOMES = {
    "BoTorchModel": ("botorch", ("botorch", "torch")),
    "PredictiveSampling": ("activeml", ("skactiveml",)),
    "SkproRegressor": ("skpro", ("skpro",)),
    "to_arviz": ("arviz", ("arviz",)),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'metaprior.bridges' has no attribute {name!r}; it has {__all__}.")
    home, libraries = _HOMES[name]
    try:
        return getattr(importlib.import_module(f"metaprior.bridges.{home}"), name)
    except ModuleNotFoundError as error:
        if error.name not in libraries:
            raise
        raise missing_library(error.name, part=name, extra=home) from error


def __dir__() -> list[str]:
    return __all__
