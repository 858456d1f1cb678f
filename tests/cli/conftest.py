"""Fixtures of the tests of commands."""

import json

import pytest

from cli_table import COLUMNS, FRAME, NUMBERS, SMALL, fit_words
from metaprior import MetaGPRegressor, kernels
from metaprior.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a training table and two models, of `price` and of `size`."""
    place = tmp_path_factory.mktemp("tables")
    FRAME.to_csv(place / "train.csv", index=False)
    for target, other in (("price", "size"), ("size", "price")):
        words = fit_words(place / "train.csv", target, place / f"{target}.metaprior", *COLUMNS, "--ignore", other)
        assert main([*words, "--quiet"]) == 0
    return place


@pytest.fixture
def run(capsys):
    """Run a command and return its exit code, stdout and stderr."""

    def call(*words):
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


@pytest.fixture
def run_json(run):
    """Run a command with --json and return its exit code and what it says."""

    def call(*words):
        code, out, _ = run(*words, "--json")
        return code, json.loads(out)

    return call


@pytest.fixture
def csv(tmp_path):
    def write(frame, name="new.csv"):
        frame.to_csv(tmp_path / name, index=False)
        return tmp_path / name

    return write


@pytest.fixture(scope="module")
def by_hand():
    """The regression that the command line should have fitted, from numbers encoded by hand."""
    return MetaGPRegressor(input_kernel=kernels.RBF(), random_state=0, **SMALL).fit(NUMBERS, FRAME["price"])
