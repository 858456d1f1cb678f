"""Libraries that only some parts need: how they are imported, and what is said where one is missing."""

import importlib
from typing import Any


def imported(module: str, *, part: str, extra: str) -> Any:
    """Return a module of a library that an extra installs; `part` names what needs it in the error."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_library(module.partition(".")[0], part=part, extra=extra) from error


def missing_library(library: str, *, part: str, extra: str) -> ImportError:
    """Return the error that says which extra brings a library, and how it is installed from a clone."""
    return ImportError(
        f"{part} needs {library}, which the extra {extra!r} installs: "
        f'run pip install ".[{extra}]" in a clone of metaprior.'
    )
