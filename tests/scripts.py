"""The scripts of .ci as modules."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def module(name: str, folder: str = ".ci") -> ModuleType:
    """Return a script of a folder of the repository as a module."""
    path = ROOT / folder / f"{name}.py"
    if not path.exists():
        pytest.skip(f"a source distribution leaves out {folder}")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, loaded)
    spec.loader.exec_module(loaded)
    return loaded
