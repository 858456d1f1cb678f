"""Checkpoints: a run that was killed at any moment goes on from its last one and ends with the same bits.

Each run has one file in its folder: the arrays of its state and history in safetensors, the rest in JSON. The file
is replaced atomically, so a kill leaves the last one or the next, and a full disk the last. It carries a digest of what
the run began with; a call that begins with something else is refused, not mixed in.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from metaprior.inference import Data, Snapshot
from metaprior.io.atomic import write_atomically

#: The version of the format; a reader refuses others.
FORMAT = "metaprior checkpoint 2"
#: The name of the file in its folder.
FILE = "run.checkpoint"


class CheckpointConfig(NamedTuple):
    """The folder of a fit's checkpoints, and every how many steps one is written."""

    folder: Path
    every: int

    def inside(self, name: str) -> "CheckpointConfig":
        """Return the configuration of one of several runs of a fit."""
        return CheckpointConfig(self.folder / name, self.every)


def checkpoint_config(checkpoint: Any, every: Any) -> CheckpointConfig | None:
    """Check the arguments of `fit`; None where no checkpoints are wanted."""
    if checkpoint is None:
        return None
    whole = isinstance(every, (int, np.integer)) and not isinstance(every, bool) and every >= 1
    if not whole:
        raise ValueError(f"every: expected a whole number of steps, at least 1; got {every!r}.")
    return CheckpointConfig(Path(checkpoint), int(every))


def refuse_checkpoint(name: str, place: CheckpointConfig | None) -> None:
    """Say so where an estimator that has no training loop is asked for checkpoints."""
    if place is not None:
        raise ValueError(f"checkpoint: {name} does not train in steps and keeps none; leave it out.")


def digest_of(model: Any, data: Data, recipe: tuple[Any, ...], draws: tuple[Any, ...], seed: int) -> str:
    """Return a digest of all that a run begins with: a model or several, the data, how it goes, and its seed."""
    digest = hashlib.sha256(repr((tuple(map(float, recipe)), tuple(draws), int(seed))).encode())
    for leaf in jax.tree.leaves((eqx.filter(model, eqx.is_array), data)):
        array = np.ascontiguousarray(leaf)
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


class Checkpoint:
    """The file of one run."""

    def __init__(self, config: CheckpointConfig, digest: str) -> None:
        """Make the folder; say so where it cannot be written to."""
        try:
            config.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                error.errno, f"checkpoint: cannot make the folder {config.folder} ({error.strerror})"
            ) from error
        self.path, self.every, self.digest = config.folder / FILE, config.every, digest

    def save(self, snapshot: Snapshot) -> None:
        """Replace the file; the last one stays where that fails."""
        from safetensors.numpy import save

        # safetensors wants contiguous arrays with their own names; empty shapes are kept
        arrays = {name: np.ascontiguousarray(value).reshape(np.shape(value)) for name, value in snapshot.arrays.items()}
        header = {"format": FORMAT, "run": self.digest, "numbers": json.dumps(snapshot.numbers)}
        try:
            write_atomically(self.path, save(arrays, header))
        except OSError as error:
            raise OSError(
                error.errno,
                f"checkpoint: cannot write {self.path} ({error.strerror or error}); the last checkpoint is untouched: "
                "make room or give another folder, and call fit again to go on from it",
            ) from error

    def load(self) -> Snapshot | None:
        """Return what the file holds; None where there is none."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as file:
                header = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, ValueError, OSError) as error:
            raise ValueError(
                f"checkpoint: {self.path} is not a checkpoint, or is not complete ({error}); delete it to start anew."
            ) from error
        if header.get("format") != FORMAT:
            raise ValueError(f"checkpoint: {self.path} is not a checkpoint of this version; give another folder.")
        if header.get("run") != self.digest:
            raise ValueError(
                f"checkpoint: {self.path} belongs to another run (other data, parameters or random_state; with "
                "random_state=None every fit is another run); give another folder, or delete it to start anew."
            )
        return Snapshot(arrays, json.loads(header["numbers"]))
