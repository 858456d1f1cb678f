"""The files of an item: one per run, written when the run is done and read only under the same configuration.

A run's file is in the safetensors format: tensors hold the arrays, and JSON in the header holds everything else. There
is no pickle in it. The file is written atomically, so a kill loses at most the runs in progress. It records what its
numbers depend on: the item, the preset and the configuration. The number of seeds is left out, because a run is the
same however many others there are.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metaprior.io.atomic import write_atomically
from metaprior_reproduction.frame.form import AnyFloat, Name, checked, parsed
from metaprior_reproduction.frame.identity import differences, identity_of, plain, versions
from metaprior_reproduction.frame.result import FIGURE_KINDS, read_result
from metaprior_reproduction.parts.item import Config, Outcome, Run

#: The version of the format; a run in a file of another version is computed again.
FORMAT = "metaprior run 1"
#: The extension of run files.
ENDING = ".safetensors"


class OtherConfigurationError(ValueError):
    """The folder holds results of another configuration."""


@dataclass(frozen=True)
class Identity:
    """The form of what the numbers of a run depend on."""

    id: Name
    preset: Name
    config: Mapping[str, Any]


@dataclass(frozen=True)
class StoredRun:
    """The form of what a run's file holds beside its arrays."""

    identity: Identity
    method: str
    seed: int
    metrics: Mapping[str, AnyFloat]
    seconds: float
    versions: Mapping[str, str]


class Kept(NamedTuple):
    """A stored run and the versions that it was computed with."""

    run: Run
    versions: dict[str, str]


@dataclass(frozen=True)
class Store:
    """The folder of an item under one configuration.

    Parameters
    ----------
    folder : Path
        `DIR/ITEM`. Runs go to its subfolder `runs`, and the result and the figures beside that.
    id : str
        The item's id.
    preset : str
        The name of the preset.
    config : mapping
        The configuration, including the number of seeds.
    """

    folder: Path
    id: str
    preset: str
    config: Config

    @property
    def runs(self) -> Path:
        """The folder of the runs."""
        return self.folder / "runs"

    @property
    def result(self) -> Path:
        """The file of the result."""
        return self.folder / "result.json"

    @property
    def identity(self) -> dict[str, Any]:
        """What the numbers of a run depend on, as JSON values."""
        return identity_of(self.id, self.preset, plain(self.config))

    def path(self, method: str, seed: int) -> Path:
        """Return the file of a run; the digest distinguishes method names that are equal once simplified."""
        simple = re.sub(r"[^a-z0-9]+", "-", method.lower()).strip("-")
        digest = hashlib.sha256(method.encode()).hexdigest()[:8]
        return self.runs / f"{simple}.{digest}.{seed}{ENDING}"

    def save(self, run: Run) -> None:
        """Write a run."""
        from safetensors.numpy import save

        arrays = {name: _checked(name, value) for name, value in run.outcome.arrays.items()}
        record = {
            "identity": self.identity,
            "method": run.method,
            "seed": run.seed,
            "metrics": {name: float(value) for name, value in run.outcome.metrics.items()},
            "seconds": run.seconds,
            "versions": versions(),
        }
        self.runs.mkdir(parents=True, exist_ok=True)
        header = {"format": FORMAT, "run": json.dumps(record)}
        write_atomically(self.path(run.method, run.seed), save(arrays, header))

    def has(self, method: str, seed: int) -> bool:
        """Return whether a run is stored and complete; one of another configuration is an error."""
        return self._record(method, seed) is not None

    def seconds(self, method: str, seed: int) -> float | None:
        """Return how long a run took; None if no complete one is stored."""
        record = self._record(method, seed)
        return None if record is None else float(record["seconds"])

    def load(self, method: str, seed: int) -> Kept:
        """Return a stored run."""
        path = self.path(method, seed)
        record, read = self._record(method, seed), _read(path, with_arrays=True)
        if record is None or read is None:
            raise FileNotFoundError(f"{path}: expected a complete run; it is gone. The same command computes it again.")
        run = Run(method, seed, Outcome(record["metrics"], read[1]), record["seconds"])
        return Kept(run, record["versions"])

    def _record(self, method: str, seed: int) -> dict[str, Any] | None:
        path = self.path(method, seed)
        found = _read(path)
        if found is None or (found[0]["method"], found[0]["seed"]) != (method, seed):
            return None
        self._check_same(path, found[0]["identity"])
        return found[0]

    def check(self) -> None:
        """Raise if the folder holds results of another configuration, or of more seeds."""
        self._check_no_links()
        for path in sorted(self.runs.glob(f"*{ENDING}")):
            if found := _read(path):
                self._check_same(path, found[0]["identity"])
        if not self.result.exists():
            return
        held = read_result(self.result, self.folder)
        self._check_same(self.result, held.identity)
        if held.seeds > self.config["seeds"]:
            raise OtherConfigurationError(
                f"{self.result} has {held.seeds} seeds, more than the {self.config['seeds']} asked for; "
                f"ask for as many, give another --out, or --force to start {self.id} anew (which deletes its files)."
            )

    def _check_no_links(self) -> None:
        """Raise if files that are written or deleted here would be those of another folder."""
        for folder in (self.folder, self.runs):
            if folder.is_symlink():
                raise ValueError(
                    f"{folder} is a link; runs and results are kept in folders. Remove the link, or give another --out."
                )

    def _check_same(self, path: Path, found: dict[str, Any]) -> None:
        if found == self.identity:
            return
        expected, came = differences(self.identity, found)
        raise OtherConfigurationError(
            f"{path} is of another configuration: expected {expected}; it has {came}. Give another --out, or --force "
            f"to start {self.id} anew (which deletes its files in {self.folder})."
        )

    def clear(self) -> None:
        """Delete the runs (also partly written ones), the result and the figures, and no other files."""
        self._check_no_links()
        for path in [*self.runs.glob(f"*{ENDING}*"), *self.old_figures(), self.result]:
            if path.is_symlink() or path.is_file():
                path.unlink(missing_ok=True)

    def old_figures(self) -> list[Path]:
        """Return the files of the figures that the stored result names; none if it cannot be read."""
        try:
            names = read_result(self.result, self.folder).figures
        except (ValueError, OSError):
            return []
        return [self.folder / f"{name}.{kind}" for name in names for kind in FIGURE_KINDS]


# --- files ------------------------------------------------------------------------------


def _checked(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"array {name!r} of a run: expected numbers; got {array.dtype}.")
    return np.ascontiguousarray(array).reshape(array.shape)


def _read(path: Path, *, with_arrays: bool = False) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
    """Return the record and the arrays of a run's file; None if it is incomplete or not of this format."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()} if with_arrays else {}  # noqa: SIM118
        if header.get("format") != FORMAT:
            return None
        record = parsed(header["run"], allow_nan=True)
        checked(StoredRun, record)
        return record, arrays
    except (SafetensorError, ValueError, KeyError, FileNotFoundError):
        return None
