"""Computes the missing runs of some items, and finishes each item once its last run is stored.

The methods and seeds of all items go through one sweep. The process that computes a run saves it as soon as it is
done. A method that raises is reported at the end and does not stop the others.
"""

import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import joblib

from metaprior.parallel import run_jobs
from metaprior_reproduction.datasets import DataError
from metaprior_reproduction.frame.progress import Call, Watch
from metaprior_reproduction.frame.store import Kept, Store
from metaprior_reproduction.frame.writing import write_result
from metaprior_reproduction.items import item_named
from metaprior_reproduction.parts.item import Item, Outcome, Run


class Failure(NamedTuple):
    """Something that raised: a call of a method, or the last step of an item."""

    id: str
    what: str
    error: str


class Reproduced(NamedTuple):
    """The results of the items that are complete, and what failed."""

    results: list[dict[str, Any]]
    failures: list[Failure]


class Ended(NamedTuple):
    """How a call ended: how long it took and, if it raised, the error for the final list and for the log."""

    seconds: float
    error: str | None = None
    told: str | None = None


@dataclass(frozen=True)
class Study:
    """An item under one configuration, with the store of its files."""

    item: Item
    store: Store

    @property
    def methods(self) -> list[str]:
        """The methods, without duplicates."""
        return list(dict.fromkeys(self.item.methods(self.store.config)))

    @property
    def seeds(self) -> range:
        """The seeds: 0, 1, 2, ..."""
        return range(self.store.config["seeds"])

    def missing(self) -> list[Call]:
        """Return the calls with at least one missing run: the first seeds of all methods come before further seeds.

        Seeds are grouped without regard to what is stored. A call that was cut short is repeated with all its seeds,
        because a seed that trains side by side with others may differ by rounding from the same seed in another group.
        """
        groups = [tuple(self.seeds[i : i + self.item.together]) for i in range(0, len(self.seeds), self.item.together)]
        calls = [Call(self.store.id, method, seeds) for seeds in groups for method in self.methods]
        return [call for call in calls if not all(self.store.has(call.method, seed) for seed in call.seeds)]

    def known(self) -> dict[tuple[str, str], list[float]]:
        """Return how long each of the stored runs took."""
        found: dict[tuple[str, str], list[float]] = {}
        for method in self.methods:
            for seed in self.seeds:
                if (seconds := self.store.seconds(method, seed)) is not None:
                    found.setdefault((self.store.id, method), []).append(seconds)
        return found

    def kept(self) -> list[Kept]:
        """Return all runs, in the order of the table."""
        return [self.store.load(method, seed) for method in self.methods for seed in self.seeds]


def reproduce(
    names: Sequence[str],
    preset: str,
    out: str | Path,
    *,
    seeds: int | None = None,
    jobs: int = 1,
    force: bool = False,
    quiet: bool = True,
) -> Reproduced:
    """Compute, save, judge and draw items; stored runs are not computed again.

    Parameters
    ----------
    names : sequence of str
        Ids of items.
    preset : {"smoke", "paper"}
        Which configuration.
    out : path
        The folder of the results; every item has a subfolder of its own.
    seeds : int, default=None
        How many seeds; None takes the number of the preset.
    jobs : int, default=1
        How many processes; -1 is one per core.
    force : bool, default=False
        Whether to delete the files of these items and start again.
    quiet : bool, default=True
        Whether to print no progress on stderr.
    """
    studies = [make_study(name, item_named(name), preset, Path(out), seeds) for name in dict.fromkeys(names)]
    for study in studies:
        study.store.clear() if force else study.store.check()
    return Session(studies, jobs).run(quiet)


def make_study(name: str, item: Item, preset: str, out: Path, seeds: int | None = None) -> Study:
    """Return an item under a preset, with the number of seeds of the preset or another one."""
    if preset not in item.presets:
        raise ValueError(f"preset: expected one of {sorted(item.presets)} for {name}; got {preset!r}.")
    config = dict(item.presets[preset]) | ({} if seeds is None else {"seeds": seeds})
    if config["seeds"] < 1:
        raise ValueError(f"seeds: expected a whole number, at least 1; got {config['seeds']}.")
    return Study(item, Store(out / name, name, preset, config))


class Session:
    """A run over several studies: which calls are left, which results are written, and what failed."""

    def __init__(self, studies: Sequence[Study], jobs: int = 1) -> None:
        self.studies = {study.store.id: study for study in studies}
        self.jobs = jobs
        self.calls = [call for study in studies for call in study.missing()]
        self.left = list(self.calls)
        self.results: dict[str, dict[str, Any]] = {}
        self.failures: list[Failure] = []

    def run(self, quiet: bool = True) -> Reproduced:
        """Compute the missing runs, and finish every study whose runs are all stored."""
        known = {place: seconds for study in self.studies.values() for place, seconds in study.known().items()}
        with Watch(self.calls, joblib.effective_n_jobs(self.jobs), known, quiet) as watch:
            for id in self.studies:
                self._end(id, watch)
            self._sweep(watch)
        return Reproduced([self.results[id] for id in self.studies if id in self.results], self.failures)

    def _sweep(self, watch: Watch) -> None:
        stores = {id: study.store for id, study in self.studies.items()}
        work = [(self.studies[call.id].item.compute, stores[call.id], call) for call in self.calls]
        try:
            for number, ended in run_jobs(attempt, work, self.jobs):
                self._call_ended(self.calls[number], ended, watch)
        except BrokenProcessPool as error:
            words = f"a process died, perhaps because memory ran out; use fewer --jobs ({error})"
            self.failures += [Failure(call.id, str(call), words) for call in self.left]

    def _call_ended(self, call: Call, ended: Ended, watch: Watch) -> None:
        self.left.remove(call)
        watch.ended(call, ended.seconds, ended.told)
        if ended.error is not None:
            self.failures.append(Failure(call.id, str(call), ended.error))
        self._end(call.id, watch)

    def _end(self, id: str, watch: Watch) -> None:
        """Write the result of an item if all its runs are stored."""
        waiting = [call.id for call in self.left] + [failure.id for failure in self.failures]
        if id in waiting:
            return
        study = self.studies[id]
        try:
            self.results[id] = write_result(study.item, study.store, study.kept())
            watch.say(f"{id}: complete, {study.store.result}")
        except Exception as error:
            watch.say(traceback.format_exc())
            self.failures.append(Failure(id, f"{id}, verdicts and figures", in_a_line(error)))


def attempt(compute: Callable[[Any, str, Sequence[int]], Sequence[Outcome]], store: Store, call: Call) -> Ended:
    """Compute runs and save them; an error is returned instead of raised."""
    started = time.perf_counter()
    try:
        outcomes = list(compute(store.config, call.method, list(call.seeds)))
        seconds = time.perf_counter() - started
        if len(outcomes) != len(call.seeds):
            raise ValueError(f"compute: expected {len(call.seeds)} outcomes, one per seed; got {len(outcomes)}.")
        for seed, outcome in zip(call.seeds, outcomes, strict=True):
            if not store.has(call.method, seed):
                store.save(Run(call.method, seed, outcome, seconds / len(call.seeds)))
    except DataError as error:  # its message already says what came and what to do
        return Ended(time.perf_counter() - started, str(error), str(error))
    except Exception as error:
        return Ended(time.perf_counter() - started, in_a_line(error), traceback.format_exc())
    return Ended(seconds)


def in_a_line(error: Exception) -> str:
    """Return an error and where it was raised, in one line."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(place.filename).name}, line {place.lineno})"
