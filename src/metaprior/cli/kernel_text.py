"""Input kernels as text: `auto`, `rbf`, `periodic(period=7)@date + matern32@temperature`, `none`.

Kernels are joined by + and *, and * binds more tightly. Settings stand in brackets, in the units of the table, and
training leaves them fixed. After @ come the columns that a kernel depends on, separated by commas.
"""

import re
from contextlib import suppress
from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING, Any

from metaprior.cli.result import UsageError

if TYPE_CHECKING:
    from metaprior.kernels import Kernel
    from metaprior.tables import Schema

#: An operator outside of brackets.
PLUS, TIMES = (re.compile(rf"\{sign}(?![^()]*\))") for sign in "+*")
PART = re.compile(r"(?P<name>\w+)\s*(?:\((?P<settings>[^()]*)\))?\s*(?:@(?P<columns>.+))?", re.DOTALL)
#: The most kernels and numbers that a text may join.
MOST_PARTS = 50
FORM = "NAME, NAME(setting=number), NAME@column or a number, joined by + and *"


def kernel_in_words(text: str, schema: "Schema") -> "Kernel | str | None":
    """Return the kernel that a text describes, for the features of a table; "auto" as it is, and None for `none`."""
    if text.strip().lower() in ("none", "auto"):
        return None if text.strip().lower() == "none" else "auto"
    joined = text.count("+") + text.count("*") + 1
    if joined > MOST_PARTS:
        raise UsageError(f"--input-kernel: expected at most {MOST_PARTS} kernels and numbers; got {joined}")
    products = [[_part(part.strip(), schema) for part in TIMES.split(product)] for product in PLUS.split(text)]
    try:
        kernel = reduce(add, [reduce(mul, product) for product in products])
    except ValueError as error:
        raise UsageError(f"--input-kernel: {error}") from error
    if isinstance(kernel, float):
        raise UsageError(f"--input-kernel: expected {FORM}, with at least one NAME; got {text!r}")
    return kernel


def _part(text: str, schema: "Schema") -> "Kernel | float":
    with suppress(ValueError):
        return float(text)
    found = PART.fullmatch(text)
    if found is None:
        raise UsageError(f"--input-kernel: expected {FORM}; got {text!r}")
    kernel = _kernel(found["name"], _settings(found["settings"] or ""))
    if found["columns"] is None:
        return kernel
    places = [place for name in found["columns"].split(",") for place in schema.places(name.strip())]
    return kernel.on(*places)


def _kernel(name: str, settings: dict[str, float]) -> "Kernel":
    from metaprior import kernels

    try:
        usual: Any = kernels.named(name, "--input-kernel")
        unknown = [setting for setting in settings if setting not in usual.hypers()]
        if unknown:
            raise ValueError(f"--input-kernel: {name} has the settings {list(usual.hypers())}, not {unknown[0]!r}.")
        return type(usual)(**settings, fixed=tuple(settings))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _settings(text: str) -> dict[str, float]:
    settings = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        try:
            settings[name.strip()] = float(value)
        except ValueError as error:
            raise UsageError(f"--input-kernel: expected setting=number; got {item!r}") from error
    return settings
