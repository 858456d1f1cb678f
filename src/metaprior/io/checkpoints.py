"""Checkpoints: a killed run resumes from its last checkpoint and gives bit for bit the result of an unbroken run.

Each run has two files in its folder: the last checkpoint and the one before it. A new one replaces the older of the
two, atomically, so a kill or a full disk leaves both whole. The arrays of the run's state and history are in
safetensors, the rest in JSON. Every file contains a digest of its own content: a damaged one is not used, and the other
one takes its place. It also contains the identity of its run (`inference.identity`): a call that starts with anything
else is rejected. Digests detect damage, and not forgery: whoever can write to the folder decides what the run becomes.
"""

import hashlib
import json
import os
import stat
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from metaprior.inference import Identity, Snapshot
from metaprior.io.atomic import write_atomically
from metaprior.user_warnings import warn_user
from metaprior.version import __version__

#: The version of the format. Files of other versions are rejected.
FORMAT = "metaprior checkpoint 3"
#: The names of the two files in their folder.
FILES = ("run.checkpoint", "run-2.checkpoint")
#: The most bytes of a file's header, which has about a hundred for every array.
LARGEST_HEADER = 16_000_000
#: What reading bytes that are no checkpoint may raise, besides the error of safetensors.
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


class CheckpointConfig(NamedTuple):
    """The folder of a fit's checkpoints, and the number of steps from one to the next."""

    folder: Path
    every: int

    def inside(self, name: str) -> "CheckpointConfig":
        """Return the configuration of one of several runs of a fit."""
        return CheckpointConfig(self.folder / name, self.every)


def checkpoint_config(checkpoint: Any, every: Any) -> CheckpointConfig | None:
    """Check the arguments of `fit`, and return None if no checkpoints are wanted."""
    if checkpoint is None:
        return None
    whole = isinstance(every, (int, np.integer)) and not isinstance(every, bool) and every >= 1
    if not whole:
        raise ValueError(f"every: expected a whole number of steps, at least 1; got {every!r}.")
    return CheckpointConfig(Path(checkpoint), int(every))


def refuse_checkpoint(name: str, place: CheckpointConfig | None) -> None:
    """Raise an error if an estimator without a training loop is asked for checkpoints."""
    if place is not None:
        raise ValueError(f"checkpoint: {name} does not train in steps, so it writes no checkpoints; leave it out.")


class _Saved(NamedTuple):
    """The content of one file. Later checkpoints have higher numbers."""

    number: int
    run: Identity
    made_by: str
    snapshot: Snapshot


class Checkpoint:
    """The two files of one run."""

    def __init__(self, config: CheckpointConfig) -> None:
        """Create the folder, or raise an error if that fails."""
        try:
            config.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                error.errno, f"checkpoint: cannot create the folder {config.folder} ({error.strerror})"
            ) from error
        self.folder, self.every = config.folder, config.every
        self._last, self._next = 0, config.folder / FILES[0]

    def load(self, run: Identity) -> Snapshot | None:
        """Return the last checkpoint that is whole, or None if there are no files.

        Raises an error if it belongs to another run, or if there are files and none of them is whole.
        """
        saved, damaged = dict[Path, _Saved](), dict[Path, str]()
        for path in (self.folder / name for name in FILES):
            if os.path.lexists(path):
                try:
                    saved[path] = _read(path)
                except (ValueError, OSError) as error:
                    damaged[path] = str(error)
        if not saved:
            _refuse_all(damaged)
            return None
        path = max(saved, key=lambda path: saved[path].number)
        _check_run(path, saved[path], run)
        if damaged:
            warn_user(
                f"checkpoint: {_listed(damaged)}; resuming from {path}. checkpoint= with another folder begins anew."
            )
        self._last = saved[path].number
        self._next = next(other for name in FILES if (other := self.folder / name) != path)
        return saved[path].snapshot

    def save(self, run: Identity, snapshot: Snapshot) -> None:
        """Replace the older of the two files. If that fails, both are left as they were."""
        content = _content(_Saved(self._last + 1, run, _versions(), snapshot))
        try:
            write_atomically(self._next, content)
        except OSError as error:
            raise OSError(
                error.errno,
                f"checkpoint: cannot write {self._next} ({error.strerror or error}); the last checkpoint is unchanged: "
                "free some space or correct the permissions, and call fit again to resume from it",
            ) from error
        self._last += 1
        self._next = next(other for name in FILES if (other := self.folder / name) != self._next)


def _versions() -> str:
    """Return the versions that the bits of a run depend on."""
    return f"metaprior {__version__}, jax {jax.__version__}, jaxlib {version('jaxlib')}, {jax.default_backend()}"


def _listed(damaged: dict[Path, str]) -> str:
    return "; ".join(f"{path} {reason}" for path, reason in damaged.items())


def _refuse_all(damaged: dict[Path, str]) -> None:
    if damaged:
        raise ValueError(f"checkpoint: {_listed(damaged)}; no other is whole: delete the files to start again.")


def _check_run(path: Path, saved: _Saved, run: Identity) -> None:
    """Raise an error unless the file was written by this run, with the same versions."""
    if saved.made_by != _versions():
        raise ValueError(
            f"checkpoint: {path} was written by {saved.made_by}, and this is {_versions()}, which may compute other "
            "bits; resume with the former, give another folder, or delete the files to start again."
        )
    differing = [name for name in {**saved.run, **run} if saved.run.get(name) != run.get(name)]
    if differing:
        raise ValueError(
            f"checkpoint: {path} belongs to another run (other data, parameters or random_state; with "
            f"random_state=None every fit is another run). It differs in: {', '.join(differing)}. Give another folder, "
            "or delete the files to start again."
        )


# --- the content of a file -------------------------------------------------------------


def _content(saved: _Saved) -> bytes:
    """Return the bytes of a file."""
    from safetensors.numpy import save

    # safetensors needs contiguous arrays; ascontiguousarray gives a scalar one axis, which reshape removes
    found = saved.snapshot.arrays.items()
    arrays = {name: np.ascontiguousarray(value).reshape(np.shape(value)) for name, value in found}
    plain = {"number": saved.number, "run": saved.run, "made_by": saved.made_by, "numbers": saved.snapshot.numbers}
    text = json.dumps(plain)
    return save(arrays, {"format": FORMAT, "content": text, "digest": _digest(text, arrays)})


def _read(path: Path) -> _Saved:
    """Return the content of a file, or raise an error that says what is wrong with it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError("is not a file")
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, LARGEST_HEADER)))["__metadata__"]
            if header["format"] == FORMAT:  # else the rest is not read
                file.seek(0)
                return _checked(header, load(file.read()))
    except (SafetensorError, *_UNREADABLE) as error:
        raise ValueError(f"is not a checkpoint, or is damaged ({type(error).__name__}: {error})") from error
    raise ValueError(
        f"has the format {header['format']!r} and not {FORMAT!r}: another version of metaprior wrote it, and it cannot "
        "be verified here. Let that version end the run, or give another folder"
    )


def _checked(header: dict[str, str], arrays: dict[str, np.ndarray]) -> _Saved:
    if header["digest"] != _digest(header["content"], arrays):
        raise ValueError("its content does not have its digest")
    plain = json.loads(header["content"])
    return _Saved(int(plain["number"]), dict(plain["run"]), plain["made_by"], Snapshot(arrays, dict(plain["numbers"])))


def _digest(text: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(f"{FORMAT}\n{text}".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
