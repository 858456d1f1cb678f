"""Fits killed by SIGKILL from outside, at random moments, go on and end with the bits of a fit that was not killed."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import long_fit

#: How many checkpoints a fit writes before each of the two times that it is killed. The sampler writes ten for the
#: starts of its chains, and four for the chains.
CHECKPOINTS = {**dict.fromkeys(long_fit.KINDS, (2, 3)), "phases": (1, 3), "sampler": (12, 1)}


def killed(out: Path, folder: Path, kind: str, num_checkpoints: int, rng: random.Random) -> bool:
    """Kill a fit a moment after some checkpoints; return whether that came before its end."""
    command = [sys.executable, "-W", "ignore", long_fit.__file__, str(out), str(folder), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(num_checkpoints):
            process.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.02))
        process.send_signal(signal.SIGKILL)
    return process.returncode == -signal.SIGKILL and not out.exists()


def ended(out: Path, folder: Path | str, kind: str) -> dict[str, bytes]:
    """Let a fit end, and return its bits."""
    command = [sys.executable, "-W", "ignore", long_fit.__file__, str(out), str(folder), kind]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)
    with np.load(out) as found:
        return {name: found[name].tobytes() for name in found}


def attack(tmp_path: Path, kind: str, checkpoints: tuple[int, ...]) -> None:
    rng, out, folder = random.Random(0), tmp_path / "out.npz", tmp_path / "kept"
    for number in checkpoints:
        assert killed(out, folder, kind, number, rng)
    assert ended(out, folder, kind) == ended(tmp_path / "alone.npz", "", kind)


def test_a_fit_killed_at_a_random_moment_ends_with_the_same_bits(tmp_path):
    attack(tmp_path, "point", (3,))


@pytest.mark.slow
@pytest.mark.parametrize("kind", long_fit.KINDS)
def test_every_kind_of_fit_killed_at_random_moments_ends_with_the_same_bits(tmp_path, kind):
    """Eighteen kills, two of each kind of fit."""
    attack(tmp_path, kind, CHECKPOINTS[kind])
