"""Checkpoints: a killed run resumes from its last checkpoint and gives bit for bit the result of an unbroken run.

Each run has one file in its folder. The arrays of its state and history are in safetensors, the rest in JSON. The file
is replaced atomically, so a kill or a full disk never leaves a partial one. It contains a digest of what the run
started with. A call that starts with anything else is rejected.
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

#: The version of the format. Files of other versions are rejected.
FORMAT = "metaprior checkpoint 2"
#: The name of the file in its folder.
FILE = "run.checkpoint"


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


def digest_of(model: Any, data: Data, recipe: tuple[Any, ...], draws: tuple[Any, ...], seed: int) -> str:
    """Return a digest of all that a run starts with: its models, data, recipe, step configuration and seed."""
    digest = hashlib.sha256(repr((tuple(map(float, recipe)), tuple(draws), int(seed))).encode())
    for leaf in jax.tree.leaves((eqx.filter(model, eqx.is_array), data)):
        array = np.ascontiguousarray(leaf)
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


class Checkpoint:
    """The file of one run."""

    def __init__(self, config: CheckpointConfig, digest: str) -> None:
        """Create the folder, or raise an error if that fails."""
        try:
            config.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OSError(
                error.errno, f"checkpoint: cannot create the folder {config.folder} ({error.strerror})"
            ) from error
        self.path, self.every, self.digest = config.folder / FILE, config.every, digest

    def save(self, snapshot: Snapshot) -> None:
        """Replace the file. If that fails, the previous one is left as it was."""
        from safetensors.numpy import save

        # safetensors needs contiguous arrays; ascontiguousarray gives a scalar one axis, which reshape removes
        arrays = {name: np.ascontiguousarray(value).reshape(np.shape(value)) for name, value in snapshot.arrays.items()}
        header = {"format": FORMAT, "run": self.digest, "numbers": json.dumps(snapshot.numbers)}
        try:
            write_atomically(self.path, save(arrays, header))
        except OSError as error:
            raise OSError(
                error.errno,
                f"checkpoint: cannot write {self.path} ({error.strerror or error}); the last checkpoint is unchanged: "
                "free some space or correct the permissions, and call fit again to resume from it",
            ) from error

    def load(self) -> Snapshot | None:
        """Return the content of the file, or None if there is no file."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as file:
                header = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, ValueError, OSError) as error:
            raise ValueError(
                f"checkpoint: {self.path} is not a checkpoint, or is incomplete ({error}); delete it to start again."
            ) from error
        if header.get("format") != FORMAT:
            raise ValueError(f"checkpoint: {self.path} is not a checkpoint of this version; give another folder.")
        if header.get("run") != self.digest:
            raise ValueError(
                f"checkpoint: {self.path} belongs to another run (other data, parameters or random_state; with "
                "random_state=None every fit is another run); give another folder, or delete it to start again."
            )
        return Snapshot(arrays, json.loads(header["numbers"]))
