"""Packages that have moved. Their old paths work for one more release, with a warning."""

import importlib
from collections.abc import Callable
from typing import Any

from metaprior.user_warnings import warn_user


def moved(old: str, new: str) -> Callable[[str], Any]:
    """Return a `__getattr__` for the old package that looks names up in the new one."""

    def found(name: str) -> Any:
        home = importlib.import_module(new)
        if name not in home.__all__:
            raise AttributeError(f"module {old!r} has no attribute {name!r}; {new!r} has {home.__all__}.")
        warn_user(f"{old} is now {new}; the old path will be removed in the next release.", DeprecationWarning)
        return getattr(home, name)

    return found
