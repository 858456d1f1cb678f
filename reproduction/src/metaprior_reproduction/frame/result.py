"""What a `result.json` holds: its form, and the one place that reads it.

A result may come from a stranger, so nothing of it is used before all of it is checked.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metaprior_reproduction.frame.form import FormError, Name, checked, read_json, short
from metaprior_reproduction.frame.identity import identity_of
from metaprior_reproduction.parts.item import Verdict

#: The largest number of figures, and the longest time in seconds.
MOST_FIGURES, LONGEST_TIME = 100, 1e10
#: The kinds of files that a figure is written to.
FIGURE_KINDS = ("png", "svg")


@dataclass(frozen=True)
class Metric:
    """A metric over seeds: mean, standard error (None: not finite) and number of runs."""

    mean: float | None
    se: float | None
    n: int


@dataclass(frozen=True)
class Row:
    """The metrics of a method."""

    method: str
    metrics: Mapping[str, Metric]


@dataclass(frozen=True)
class FinishedRun:
    """The metrics of a method with one seed, and the time it took."""

    method: str
    seed: int
    metrics: Mapping[str, float | None]
    seconds: float


@dataclass(frozen=True)
class Result:
    """The result of an item; docs/experiments.md explains the fields."""

    id: Name
    title: str
    claim: str
    preset: Name
    config: Mapping[str, Any]
    versions: Mapping[str, str]
    seconds: float
    verdicts: tuple[Verdict, ...]
    rows: tuple[Row, ...]
    paper: Mapping[str, Mapping[str, float | None]]
    figures: tuple[Name, ...]
    notes: str = ""
    runs: tuple[FinishedRun, ...] = ()

    def __post_init__(self) -> None:
        seeds = self.config.get("seeds")
        if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
            raise FormError(f"config.seeds: expected a whole number, at least 1; got {short(ascii(seeds))}")
        if len(set(self.figures)) != len(self.figures) or len(self.figures) > MOST_FIGURES:
            raise FormError(f"figures: expected at most {MOST_FIGURES} different names; got {len(self.figures)}")
        if not 0 <= self.seconds <= LONGEST_TIME:
            raise FormError(f"seconds: expected a number from 0 to {LONGEST_TIME:g}; got {self.seconds:g}")

    @property
    def seeds(self) -> int:
        """The number of seeds."""
        return int(self.config["seeds"])

    @property
    def identity(self) -> dict[str, Any]:
        """What the numbers depend on."""
        return identity_of(self.id, self.preset, self.config)


def read_result(path: Path, folder: Path) -> Result:
    """Return the content of a `result.json` that is in a folder."""
    check_inside(path, folder)
    try:
        return checked(Result, read_json(path))
    except FormError as error:
        raise ValueError(
            f"{path}: expected a complete result of 'metaprior reproduce'; {error}. Delete the file, and the same "
            "command writes it again."
        ) from error


def check_inside(path: Path, folder: Path) -> None:
    """Raise if a path does not lead to a regular file in a folder, once all links are followed."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(os.path.realpath(folder)) or not real.is_file():
        raise ValueError(
            f"{path}: expected a file inside {folder}; it is a link that leaves the folder, or not a file. Remove it."
        )
