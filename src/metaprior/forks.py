"""Forked processes: a child of a process in which JAX has run cannot compute.

XLA computes in threads of its own, and a fork copies the memory of a process but none of its threads. A program that is
started in the child waits for them forever. `refuse_after_fork` is called before programs start, and raises instead.
A fork before the first program of the parent is harmless: the child then starts threads of its own.
"""

import os
from typing import ClassVar


class _Forks:
    """Whether this process has computed, and whether it was forked from one that had."""

    is_watching: ClassVar[bool] = False
    is_unable: ClassVar[bool] = False

    @classmethod
    def watch(cls) -> None:
        """Mark all processes that are forked from now on."""
        cls.is_watching = True
        if hasattr(os, "register_at_fork"):  # systems without it have no fork
            os.register_at_fork(after_in_child=cls.mark)

    @classmethod
    def mark(cls) -> None:
        cls.is_unable = True


def refuse_after_fork() -> None:
    """Raise in a process that was forked from one in which programs have run; note that they run in this one."""
    if _Forks.is_unable:
        raise RuntimeError(
            "expected a process that can compute; this one was forked from a process in which metaprior had already "
            "computed, and the threads of JAX do not exist here, so that a fit or a prediction would hang. Start "
            'workers with multiprocessing.get_context("spawn") or "forkserver", or with joblib, or fork before the '
            "first fit and prediction."
        )
    if not _Forks.is_watching:
        _Forks.watch()
