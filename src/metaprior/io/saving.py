"""Files of fitted estimators and of the states of loops, without pickle.

A file is in the safetensors format (`container.py`). Its header contains the tree of plain values (`plain.py`) as JSON.
Files carry a checksum, so altered, truncated or foreign files are rejected with a clear error. Writing is atomic
(`atomic.py`), and takes no second copy of the arrays. Reading takes at most a small multiple of the size of the file,
and raises a ValueError or an OSError whatever the file contains.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metaprior.io.atomic import write_atomically
from metaprior.io.container import ARRAY_BYTES, Header, OpenFile, opened, parts_of, read_arrays, read_header
from metaprior.io.json_text import JSONText
from metaprior.io.plain import PlainWriter
from metaprior.io.reading import EstimatorParts, PlainReader
from metaprior.version import __version__

#: The version of the format. Later ones are rejected and earlier ones can be read: format 1 contains the estimator
#: alone, and format 2 also the version of the library that wrote it.
FORMAT = 2
#: The only version that wrote files of format 1, which do not name their version.
FIRST_VERSION = "0.1.0"
#: Where a description names the version: it is the last of its members.
_WRITTEN_BY = re.compile(r'"written_by": "([^"\\]{1,40})"\}$')


def save(estimator: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a fitted estimator to a file; see `Estimator.save`."""
    writer = PlainWriter()
    _write(Path(path), {"estimator": writer.estimator(estimator)}, writer.arrays, overwrite=overwrite)


def load(path: str | os.PathLike[str]) -> Any:
    """Load an estimator from a file. It predicts bit for bit what the saved one did.

    Parameters
    ----------
    path : str or path
        A file written by `save`. Files from untrusted sources are safe to load: no code in them is run, memory is
        limited to a small multiple of the size of the file, and a file that does not contain a model which can predict
        is rejected with a ValueError.
    """
    source = Path(path)
    held = _loaded(source, "estimator")
    if held.parts is None:
        raise ValueError(f"load: expected the file of an estimator; {source} contains a state of kind {held.kind!r}.")
    with _explained(source, held.writer):
        return held.parts.made(is_fitted=True)


def save_state(path: str | os.PathLike[str], kind: str, state: dict[str, Any], *, overwrite: bool = True) -> None:
    """Write a state to a file atomically, and replace the file if it exists.

    Parameters
    ----------
    path : str or path
    kind : str
        The kind of state, which `load_state` checks.
    state : dict
        Numbers, strings, arrays, estimators and other objects of this library, and lists, tuples and dicts of them.
    overwrite : bool, default=True
        Whether an existing file is replaced. If not, it is an error.
    """
    writer = PlainWriter()
    _write(Path(path), {"kind": kind, "state": writer.plain(state)}, writer.arrays, overwrite=overwrite)


def load_state(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Return the state that `save_state` wrote. No code in the file is run; see `load`."""
    source = Path(path)
    held = _loaded(source, kind)
    if held.kind != kind or not isinstance(held.state, dict):
        raise ValueError(f"load: expected a file of kind {kind!r}; {source} is of kind {held.kind!r}.")
    return held.state


def origin(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the format of a file, and the version of the library that wrote it. Only the header is read."""
    source = Path(path)
    with _opened(source) as (_, header):
        return {"format": _format(header.texts), "written_by": _writer(header.texts)}


class _Content(NamedTuple):
    """What a file contains: a state and its kind, or the parts of an estimator; and the version that wrote it."""

    kind: str
    state: Any
    parts: EstimatorParts | None
    writer: str


def _loaded(source: Path, wanted: str) -> _Content:
    """Read a file whose checksum is right. A state of another kind than the wanted one is not built."""
    with _opened(source) as (file, header):
        with _complete(source):
            arrays = read_arrays(file, header.entries)
        text = header.texts["content"]
        if header.texts.get("sha256") != _digest(text, arrays):
            raise ValueError(
                f"load: {source} was altered after it was written (its checksum differs); get another copy."
            )
        writer = _writer(header.texts)
        with _explained(source, writer):
            reader = PlainReader(JSONText(text, file.most_bytes - ARRAY_BYTES * len(arrays)), arrays)
            found = _content_1(reader) if _format(header.texts) == 1 else _content(reader, wanted)
            return found._replace(writer=writer)


def _content_1(reader: PlainReader) -> _Content:
    """Read the content of a file of format 1, which is an estimator alone."""
    parts = reader.estimator()
    reader.text.end()
    return _Content("", None, parts, "")


def _content(reader: PlainReader, wanted: str) -> _Content:
    kind, state, parts = "", None, None
    for name in reader.text.members():
        if name == "estimator":
            parts = reader.estimator()
        elif name == "state":
            state = reader.value()
        elif name == "kind":
            kind = reader.text.string()
            if kind != wanted:
                return _Content(kind, None, None, "")
        elif name == "written_by":
            reader.text.string()
        else:
            raise ValueError(f"unexpected part {name!r}")
    reader.text.end()
    if parts is not None and parts.is_state_record:
        return _Content(str(parts.params["kind"]), parts.state, None, "")
    if parts is not None:
        kind = parts.class_name.partition(":")[2]
    return _Content(kind, state, parts, "")


def _write(target: Path, content: dict[str, Any], arrays: dict[str, np.ndarray], *, overwrite: bool) -> None:
    text = json.dumps({**content, "written_by": __version__}, sort_keys=True)
    texts = {"format": f"metaprior {FORMAT}", "content": text, "sha256": _digest(text, arrays)}
    write_atomically(target, parts_of(texts, arrays), overwrite=overwrite)


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[tuple[OpenFile, Header]]:
    """Open a file of a known format and read its header, or raise an error that says what is wrong with it."""
    with opened(source) as file:
        with _complete(source):
            header = read_header(file)
        version = _format(header.texts)
        if not version or "content" not in header.texts:
            raise ValueError(f"load: {source} is a safetensors file, but metaprior did not write it.")
        if version > FORMAT:
            raise ValueError(
                f"load: {source} has format {version}; this version reads up to {FORMAT}; update metaprior."
            )
        yield file, header


@contextlib.contextmanager
def _complete(source: Path) -> Iterator[None]:
    """Say that a file is not one of this library, or not whole, whatever goes wrong with its bytes."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise ValueError(
            f"load: {source} is not a metaprior file, or is incomplete ({_reason(error)}); get another copy."
        ) from error


@contextlib.contextmanager
def _explained(source: Path, writer: str) -> Iterator[None]:
    """Add the version that wrote a file to errors about its content, whatever they are."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"load: {source} was written by metaprior {writer} and cannot be read by the installed version, "
            f"{__version__} ({_reason(error)}); load it with the version that wrote it."
        ) from error


def _reason(error: Exception) -> str:
    """Return the first line of an error in at most 300 characters: texts of a file may be long."""
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0][:300]


def _format(texts: dict[str, str]) -> int:
    """Return the version of the format, or 0 if the file was not written by metaprior."""
    kind, _, version = texts.get("format", "").partition(" ")
    return int(version) if kind == "metaprior" and version.isdecimal() and len(version) < 10 else 0


def _writer(texts: dict[str, str]) -> str:
    """Return the version of the library that wrote a file."""
    if _format(texts) == 1:
        return FIRST_VERSION
    named = _WRITTEN_BY.search(texts["content"][-100:])
    return "of an unknown version" if named is None else named.group(1)


def _digest(text: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape or (1,)}".encode())  # as all versions have it
        digest.update(array.data if array.size else b"")
    return digest.hexdigest()
