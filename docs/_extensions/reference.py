"""The reference: one page per public module, written from what the modules export, before Sphinx reads the pages.

A module is public if `metaprior` exports it, or if it lies in one that is exported and has a list `__all__` of its own.
A name is described once, on the page of the first module that exports it; the others link there.
"""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import GenericAlias, ModuleType
from typing import TYPE_CHECKING, Any

import metaprior

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config


def public_modules() -> list[ModuleType]:
    """Return the modules of the reference, `metaprior` itself first."""
    exported = [getattr(metaprior, name) for name in metaprior.__all__]
    first = [value for value in exported if inspect.ismodule(value)]
    return [metaprior, *(module for value in first for module in (value, *inner_modules(value)))]


def inner_modules(package: ModuleType) -> Iterator[ModuleType]:
    """Yield the modules of a package that say what they export."""
    for found in pkgutil.iter_modules(getattr(package, "__path__", [])):
        path = Path(package.__path__[0]) / found.name
        source = path / "__init__.py" if found.ispkg else path.with_suffix(".py")
        if not found.name.startswith("_") and "\n__all__ = " in source.read_text(encoding="utf-8"):
            yield importlib.import_module(f"{package.__name__}.{found.name}")


def public_names(module: ModuleType) -> list[str]:
    """Return the classes, functions and constants that a module exports."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, value in vars(module).items() if is_own(name, value, module)]
    return sorted(name for name in names if not inspect.ismodule(getattr(module, name)))


def is_own(name: str, value: object, module: ModuleType) -> bool:
    """Return whether a module without `__all__` defines a name for others."""
    return not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and has_page(value)


def has_page(value: object) -> bool:
    """Return whether a value is described on a page of its own: a class or a function, and not a constant."""
    return inspect.isclass(value) or inspect.isfunction(value)


def described_where(modules: Iterable[ModuleType]) -> dict[str, dict[str, str]]:
    """Return, for every module and every name it exports, the full name under which that is described."""
    homes: dict[int, str] = {}
    where: dict[str, dict[str, str]] = {}
    for module in modules:
        where[module.__name__] = {}
        for name in public_names(module):
            value, full = getattr(module, name), f"{module.__name__}.{name}"
            where[module.__name__][name] = homes.setdefault(id(value), full) if has_page(value) else full
    return where


def page_of(module: ModuleType, names: dict[str, str]) -> str:
    """Return the page of a module: what it is for, a table of its names, and links to those described elsewhere."""
    title = module.__name__
    own = [name for name, full in names.items() if full == f"{title}.{name}"]
    listed = [name for name in own if has_page(getattr(module, name))]
    parts = [
        f"{title}\n{'=' * len(title)}",
        f".. automodule:: {title}\n   :no-members:\n   :no-index:",
        f".. currentmodule:: {title}",
    ]
    if listed:
        lines = "\n".join(f"   {name}" for name in listed)
        parts.append(f".. autosummary::\n   :toctree: ../objects\n   :nosignatures:\n\n{lines}")
    parts += [described_here(name, getattr(module, name)) for name in own if name not in listed]
    elsewhere = [full for name, full in names.items() if full != f"{title}.{name}"]
    if elsewhere:
        parts.append("It also exports " + ", ".join(f":py:obj:`{full}`" for full in elsewhere) + ".")
    return "\n\n".join(parts) + "\n"


def described_here(name: str, value: object) -> str:
    """Return the description of a constant, or of a type that has another name here."""
    if isinstance(value, GenericAlias):
        return f".. py:type:: {name}\n   :canonical: {value}"
    return f".. autodata:: {name}\n   :no-value:"


def write_pages(app: "Sphinx", config: "Config") -> None:
    """Write the pages of all modules into docs/api/modules, where autosummary finds what it has to describe."""
    from sphinx.ext.autodoc.mock import mock

    folder = Path(app.srcdir) / "api" / "modules"
    folder.mkdir(parents=True, exist_ok=True)
    with mock(config.autodoc_mock_imports):
        where = described_where(public_modules())
        pages = {f"{name}.rst": page_of(sys.modules[name], names) for name, names in where.items()}
    for old in set(folder.glob("*.rst")) - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text:
            (folder / name).write_text(text, encoding="utf-8")


def check_pages(app: "Sphinx", failed: Exception | None) -> None:
    """Warn of names that ought to be described and are not, once all pages are written."""
    from sphinx.ext.autodoc.mock import mock
    from sphinx.util import logging

    if failed is not None or app.builder.name != "html":
        return
    with mock(app.config.autodoc_mock_imports):
        where = described_where(public_modules())
    described = {name for name, *_ in app.env.get_domain("py").get_objects()}
    wanted = {full for names in where.values() for full in names.values()}
    for name in sorted(wanted - described):
        logging.getLogger(__name__).warning("expected %s in the reference; it is on no page.", name)


def setup(app: "Sphinx") -> dict[str, Any]:
    """Write the pages before Sphinx looks which there are."""
    app.connect("config-inited", write_pages)
    app.connect("build-finished", check_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
