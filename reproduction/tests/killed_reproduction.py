"""Reproduce the tosses and be killed by SIGKILL at a chosen event: OUT LOG TOGETHER EVENT NUMBER.

Events are the middle of a run and the moments of writing a file (before the temporary file, after its content, before
and after the rename); at the NUMBER-th EVENT the process kills itself. Every run that is begun leaves a line in LOG.
"""

import dataclasses
import os
import signal
import sys
import tempfile
from pathlib import Path

import tosses
from metaprior_reproduction.frame.running import Session, make_study


def die_at(event: str, number: int):
    """Return what counts an event and ends the process at the chosen one."""
    left = [number]

    def happened(name: str) -> None:
        if name == event:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    make, replace, flush = tempfile.mkstemp, os.replace, os.fsync
    tempfile.mkstemp = lambda *a, **k: (happened("before"), make(*a, **k))[1]
    os.fsync = lambda *a: (happened("written"), flush(*a))[1]
    os.replace = lambda *a: (happened("unnamed"), replace(*a), happened("renamed"))[1]
    return happened


def main(out: str, log: str, together: str, event: str, number: str) -> None:
    """Reproduce, and be killed."""
    happened = die_at(event, int(number))

    def compute(config, method, seeds):
        with Path(log).open("a") as file:
            file.writelines(f"{method} {seed}\n" for seed in seeds)
        outcomes = tosses.compute(config, method, seeds)
        happened("computing")
        return outcomes

    item = dataclasses.replace(tosses.ITEM, compute=compute, together=int(together))
    session = Session([make_study("tosses", item, "smoke", Path(out))])
    assert session.run().failures == []


if __name__ == "__main__":
    main(*sys.argv[1:])
