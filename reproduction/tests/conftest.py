"""Fixtures of the tests of the frame."""

import shutil
import sys

import pytest

import tosses
from metaprior.cli import main
from metaprior_reproduction import items
from tossing import reproduced


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder in which the tosses were reproduced at once."""
    out = tmp_path_factory.mktemp("whole")
    reproduced(out)
    return out


@pytest.fixture
def finished(whole, tmp_path):
    """A copy of that folder."""
    return shutil.copytree(whole, tmp_path / "finished")


@pytest.fixture
def only_tosses(tmp_path, monkeypatch):
    """Let the tosses be the only item there is."""
    (tmp_path / "items").mkdir()
    (tmp_path / "items" / "tosses.py").write_text("from tosses import ITEM\n")
    monkeypatch.setattr(items, "__path__", [str(tmp_path / "items")])
    yield tosses.ITEM
    sys.modules.pop("metaprior_reproduction.items.tosses", None)


@pytest.fixture
def run(capsys):
    """Run a command and return its exit code, stdout and stderr."""

    def call(*words):
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
