"""The names in the wheel and in the source distribution of a project: shared by the tests of both packages."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest


class Distributions(NamedTuple):
    """The files of both distributions; those of the source distribution without its own folder."""

    wheel: list[str]
    source: list[str]


def built(project: Path, out: Path) -> Distributions:
    """Build a project into a folder."""
    pytest.importorskip("hatchling")
    words = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    ran = subprocess.run(words, cwd=project, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = archive.namelist()
    with tarfile.open(source) as archive:
        in_source = [name.partition("/")[2] for name in archive.getnames()]
    return Distributions(in_wheel, in_source)
