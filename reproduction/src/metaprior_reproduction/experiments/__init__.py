"""The paper's figures and tables, one file each: `prior_global.py` is the item `prior-global`.

A file with an `ITEM` is an item; a new file is a new item.
"""

import importlib
import pkgutil

from metaprior_reproduction.experiments.item import Config, Item, Outcome, Results, Run, Summary, Verdict


def names() -> list[str]:
    """Return the ids of all items."""
    found = [module.name for module in pkgutil.iter_modules(__path__)]
    return [name.replace("_", "-") for name in found if hasattr(_module(name), "ITEM")]


def item_named(name: str) -> Item:
    """Return an item by its id."""
    if name not in names():
        raise ValueError(f"unknown item {name!r}; expected one of {', '.join(names())}.")
    item: Item = _module(name.replace("-", "_")).ITEM
    return item


def _module(name: str):  # type: ignore[no-untyped-def]
    return importlib.import_module(f"{__name__}.{name}")


__all__ = ["Config", "Item", "Outcome", "Results", "Run", "Summary", "Verdict", "item_named", "names"]
