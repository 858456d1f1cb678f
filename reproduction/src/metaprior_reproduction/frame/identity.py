"""What the numbers of an item depend on: the item, preset and configuration as JSON values, and the versions."""

import json
import math
import os
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import numpy as np

from metaprior import __version__

#: Packages whose versions are recorded with every run.
REMEMBERED = ("jax", "jaxlib", "numpy", "scipy", "scikit-learn", "equinox", "optax")
#: Differences are described in at most so many characters.
LONGEST = 1000


def identity_of(id: str, preset: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the numbers of a result depend on: item, preset, and configuration without the number of seeds."""
    return {"id": id, "preset": preset, "config": {name: value for name, value in config.items() if name != "seeds"}}


def plain(value: Any) -> Any:
    """Return a value that JSON can hold: NumPy numbers become Python's, tuples lists, and non-finite numbers None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    raise TypeError(f"expected what JSON can hold (numbers, strings, lists and mappings); got {value!r}.")


def versions() -> dict[str, str]:
    """Return the versions of the packages that compute, and the kind of machine."""
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    found = {name: version(name) for name in REMEMBERED}
    return {"metaprior": __version__, "python": platform.python_version(), **found, "machine": machine}


def differences(expected: dict[str, Any], found: dict[str, Any]) -> tuple[str, str]:
    """Return the settings that differ, in words: as expected, and as found."""
    flat = [{"item": one["id"], "preset": one["preset"], **one["config"]} for one in (expected, found)]
    names = [name for name in {**flat[0], **flat[1]} if flat[0].get(name, flat) != flat[1].get(name, flat)]
    own, other = (", ".join(f"{n} {json.dumps(one[n])}" if n in one else f"no {n}" for n in names) for one in flat)
    return own[:LONGEST], other[:LONGEST]
