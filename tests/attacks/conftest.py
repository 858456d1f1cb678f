"""Processes that are started here can be interrupted, also where the tests run in the background of a shell."""

import os
import signal

import pytest

# Windows has none of the signals, limits and forks that these tests attack with.
collect_ignore_glob = [] if hasattr(os, "fork") else ["test_*.py"]


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """A shell lets what it runs in the background ignore SIGINT, and every process that this starts inherits that."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
