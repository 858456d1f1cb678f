"""The frame with the tosses in it: what the tests of the frame, of its command and of its pages share."""

import dataclasses
from pathlib import Path

import tosses
from metaprior_reproduction.frame.running import Session, make_study
from metaprior_reproduction.frame.store import ENDING

FAIR, BENT = tosses.CHANCES


def session(out, preset="smoke", seeds=None, jobs=1, **changes):
    """Return a session of the tosses, with changes to the item."""
    study = make_study("tosses", dataclasses.replace(tosses.ITEM, **changes), preset, Path(out), seeds)
    study.store.check()
    return Session([study], jobs)


def reproduced(out, **options):
    """Run the tosses to their end and return the result."""
    done = session(out, **options).run()
    assert done.failures == []
    return done.results[0]


def counting(begun, function=tosses.compute):
    """Return a compute that notes its calls."""

    def compute(config, method, seeds):
        begun.append((method, tuple(seeds)))
        return function(config, method, seeds)

    return compute


def run_files(out):
    return sorted((Path(out) / "tosses" / "runs").glob(f"*{ENDING}"))


def contents(out):
    return {path.name: path.read_bytes() for path in (Path(out) / "tosses").iterdir() if path.is_file()}


def without_times(result):
    runs = [{name: value for name, value in run.items() if name != "seconds"} for run in result["runs"]]
    return {**{name: value for name, value in result.items() if name != "seconds"}, "runs": runs}


def failing(config, method, seeds):
    if method == FAIR:
        raise ArithmeticError("the coin stands on its edge")
    return tosses.compute(config, method, seeds)
