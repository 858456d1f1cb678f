"""Files of fitted estimators and of the states of loops, without pickle.

A file is in the safetensors format. Its header contains the tree of plain values (`plain.py`) as JSON. Files carry a
checksum, so altered, truncated or foreign files are rejected with a clear error. Writing is atomic (`atomic.py`).
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from metaprior.io.atomic import write_atomically
from metaprior.io.plain import PlainReader, PlainWriter
from metaprior.io.renamed import STATE_RECORDS
from metaprior.version import __version__

#: The version of the format. Later ones are rejected and earlier ones can be read: format 1 contains the estimator
#: alone, and format 2 also the version of the library that wrote it.
FORMAT = 2
#: The only version that wrote files of format 1, which do not name their version.
FIRST_VERSION = "0.1.0"


def save(estimator: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted estimator to a file; see `Estimator.save`."""
    target = Path(path)
    if target.exists() and not overwrite:
        raise FileExistsError(f"save: {target} exists; give another name, or pass overwrite=True.")
    writer = PlainWriter()
    _write(target, {"estimator": writer.estimator(estimator)}, writer.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator from a file. It predicts bit for bit what the saved one did.

    Parameters
    ----------
    path : str or path
        A file written by `save`. Files from untrusted sources are safe to load: no code in them is run.
    """
    source = Path(path)
    writer, content, arrays = _opened(source)
    kind, state = _kind_and_state(content)
    if state is not None:
        raise ValueError(f"load: expected the file of an estimator; {source} contains a state of kind {kind!r}.")
    with _explained(source, writer):
        return PlainReader(arrays).estimator(content["estimator"])


def save_state(path: str | os.PathLike[str], kind: str, state: dict[str, Any]) -> None:
    """Write a state to a file atomically, and replace the file if it exists.

    Parameters
    ----------
    path : str or path
    kind : str
        The kind of state, which `load_state` checks.
    state : dict
        Numbers, strings, arrays, estimators and other objects of this library, and lists, tuples and dicts of them.
    """
    writer = PlainWriter()
    _write(Path(path), {"kind": kind, "state": writer.plain(state)}, writer.arrays)


def load_state(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Return the state that `save_state` wrote. No code in the file is run."""
    source = Path(path)
    writer, content, arrays = _opened(source)
    found, state = _kind_and_state(content)
    if found != kind:
        raise ValueError(f"load: expected a file of kind {kind!r}; {source} is of kind {found!r}.")
    with _explained(source, writer):
        return PlainReader(arrays).value(state)


def origin(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the format of a file, and the version of the library that wrote it."""
    source = Path(path)
    return {"format": _format(_read(source)[0]), "written_by": _opened(source)[0]}


def _kind_and_state(content: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """Return the kind of a state and the state itself, or the class of an estimator and None."""
    if "state" in content:
        return content["kind"], content["state"]
    held = content["estimator"]
    if held["class"] in STATE_RECORDS:
        return held["params"]["kind"], {"dict": held["state"]}
    return held["class"].partition(":")[2], None


def _write(target: Path, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    from safetensors.numpy import save as to_bytes

    text = json.dumps({**content, "written_by": __version__}, sort_keys=True)
    header = {"format": f"metaprior {FORMAT}", "content": text, "sha256": _digest(text, arrays)}
    write_atomically(target, to_bytes(arrays, metadata=header))


def _opened(source: Path) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Return the version that wrote a file, its content as plain values, and its arrays."""
    header, arrays = _read(source)
    if header.get("sha256") != _digest(header["content"], arrays):
        raise ValueError(f"load: {source} was altered after it was written (its checksum differs); get another copy.")
    with _explained(source, "of an unknown version"):
        content = json.loads(header["content"])
        if _format(header) == 1:
            return FIRST_VERSION, {"estimator": content}, arrays
        return str(content["written_by"]), content, arrays


@contextlib.contextmanager
def _explained(source: Path, writer: str) -> Iterator[None]:
    """Add the version that wrote a file to errors about its content."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"load: {source} was written by metaprior {writer} and cannot be read by the installed version, "
            f"{__version__} ({error}); load it with the version that wrote it."
        ) from error


def _format(header: dict[str, str]) -> int:
    """Return the version of the format, or 0 if the file was not written by metaprior."""
    kind, _, version = header.get("format", "").partition(" ")
    return int(version) if kind == "metaprior" and version.isdigit() else 0


def _read(source: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Return the header and the arrays of a file, or raise an error that says what is wrong with it."""
    from safetensors import SafetensorError, safe_open

    if not source.is_file():
        raise FileNotFoundError(f"load: there is no file {source}.")
    try:
        with safe_open(source, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, OSError) as error:
        raise ValueError(
            f"load: {source} is not a metaprior file, or is incomplete ({error}); get another copy."
        ) from error
    version = _format(header)
    if not version or "content" not in header:
        raise ValueError(f"load: {source} is a safetensors file, but metaprior did not write it.")
    if version > FORMAT:
        raise ValueError(f"load: {source} has format {version}; this version reads up to {FORMAT}; update metaprior.")
    return header, arrays


def _digest(text: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
