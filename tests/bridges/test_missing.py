"""A bridge whose library is missing says what to install; the others are not touched."""

import json
import subprocess
import sys

import pytest

from metaprior import bridges

#: What each bridge imports, and the extra that brings it.
LIBRARIES = {
    "BoTorchModel": ("torch", "botorch"),
    "PredictiveSampling": ("skactiveml", "activeml"),
    "SkproRegressor": ("skpro", "skpro"),
    "to_arviz": ("arviz", "arviz"),
}

#: Imports the bridges where none of their libraries can be found.
WITHOUT = """
import importlib.machinery, json, sys
class Nowhere:
    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in HIDDEN else real(name, path, target)
    find_distributions = staticmethod(importlib.machinery.PathFinder.find_distributions)
HIDDEN = ("torch", "botorch", "skactiveml", "skpro", "arviz", "arviz_base")
real = importlib.machinery.PathFinder.find_spec
place = sys.meta_path.index(importlib.machinery.PathFinder)
sys.meta_path[place] = Nowhere()
from metaprior import bridges
told = {}
for name in bridges.__all__:
    try:
        getattr(bridges, name)
    except ImportError as error:
        told[name] = str(error)
print(json.dumps(told))
"""


def test_a_missing_library_is_named_with_the_extra_that_brings_it():
    run = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    for name, (library, extra) in LIBRARIES.items():
        assert told[name].startswith(f"{name} needs {library}, ")
        assert f'pip install ".[{extra}]" in a clone' in told[name]


def test_every_bridge_is_named_and_no_other():
    assert set(LIBRARIES) == set(bridges.__all__) == set(dir(bridges))
    with pytest.raises(AttributeError, match="has no attribute 'Pyro'; it has"):
        bridges.Pyro  # noqa: B018
