"""The paper's figures and tables, and some of our own, one file each: `prior_global.py` is the item `prior-global`.

Every module of this folder has an `ITEM`; a new file is a new item.
"""

import importlib
import pkgutil

from metaprior_reproduction.parts.item import Item


def names() -> list[str]:
    """Return the ids of all items."""
    return [module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__)]


def item_named(name: str) -> Item:
    """Return an item by its id."""
    if name not in names():
        raise ValueError(f"unknown item {name!r}; expected one of {', '.join(names())}.")
    item: Item = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").ITEM
    return item


__all__ = ["item_named", "names"]
