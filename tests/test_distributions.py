"""What is shipped: the library alone in its wheel; source, tests and docs in its source distribution."""

from pathlib import Path

import pytest

from distributions import Distributions, built

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> Distributions:
    return built(ROOT, tmp_path_factory.mktemp("dist"))


def test_the_wheel_holds_the_modules_of_the_library_and_nothing_else(shipped):
    own = [name for name in shipped.wheel if ".dist-info/" not in name]
    assert set(own) == {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")} | {
        "metaprior/py.typed",
        "metaprior/plots/metaprior.mplstyle",
    }
    words = ("experiment", "report", "mushroom", "branin", "registry", "results", "reproduction")
    assert [name for name in own for word in words if word in name] == []


def test_the_source_distribution_holds_source_tests_and_docs(shipped):
    folders = {name.partition("/")[0] for name in shipped.source if "/" in name}
    assert folders == {"src", "tests", "docs", "examples"}
    assert {name for name in shipped.source if name.startswith("src/")} > {"src/metaprior/__init__.py"}
    assert {"pyproject.toml", "README.md", "LICENSE", "conftest.py", "docs/method.md"} <= set(shipped.source)
