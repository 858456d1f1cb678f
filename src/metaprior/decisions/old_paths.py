"""Packages that have moved: their public names are given under the old path for one release, with a warning."""

import importlib
import warnings
from collections.abc import Callable
from typing import Any


def moved(old: str, new: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose public names are those of another now."""

    def found(name: str) -> Any:
        home = importlib.import_module(new)
        if name not in home.__all__:
            raise AttributeError(f"module {old!r} has no attribute {name!r}; {new!r} has {home.__all__}.")
        warnings.warn(f"{old} is now {new}; the old path will go with the next release.", DeprecationWarning, 2)
        return getattr(home, name)

    return found
