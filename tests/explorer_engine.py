"""The explorer's scripts, run by node on inputs that a test gives, and its module that exports models."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "explorer"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(
    NODE is None, reason="node is not installed (Debian: apt-get install nodejs), so the explorer's scripts do not run"
)


def answers(case: str, **inputs: Any) -> dict[str, Any]:
    """Return what a case of `tests/explorer/cases.js` answers; lists of numbers come back as arrays."""
    assert NODE is not None
    script = Path(__file__).parent / "explorer" / "cases.js"
    text = json.dumps({"case": case, **inputs}, default=lambda value: np.asarray(value).tolist())
    done = subprocess.run(
        [NODE, str(script)], input=text, capture_output=True, text=True, encoding="utf-8", check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return {
        name: np.asarray(value) if isinstance(value, list) else value for name, value in json.loads(done.stdout).items()
    }


def exporter() -> ModuleType:
    """Return the module that exports the fitted models."""
    spec = importlib.util.spec_from_file_location("explorer_export", FOLDER / "export.py")
    module = importlib.util.module_from_spec(spec)
    # a dataclass looks its module up
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
