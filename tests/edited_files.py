"""Saved files taken apart and put together again, with a right checksum: what tests of hostile files need.

Reading and writing is done by the safetensors library, so that our own reader and writer have an independent twin.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from metaprior.io.saving import _digest

Arrays = dict[str, np.ndarray]


def taken_apart(path: str | Path) -> tuple[dict[str, str], Arrays]:
    """Return the texts of a file's header, and its arrays."""
    with safe_open(path, framework="numpy") as file:
        return dict(file.metadata()), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def put_together(path: str | Path, texts: dict[str, str], content: Any, arrays: Arrays) -> None:
    """Write a file with this content, as a text or as a tree, and with a right checksum."""
    text = content if isinstance(content, str) else json.dumps(content)
    arrays = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    save_file(arrays, path, {**texts, "content": text, "sha256": _digest(text, arrays)})
