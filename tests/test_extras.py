"""Extras: what is missing is named with the extra that brings it, and with a way to install it that works."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import metaprior
from metaprior.extras import imported, missing_library
from source_rules import declared

ROOT = Path(__file__).parents[1]
PACKAGE = Path(metaprior.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: The package is on no index yet: it is installed from a clone.
FROM_AN_INDEX = re.compile(r"""pip install (?:-U |--upgrade )?["'.]?metaprior\b""")


def named_in_source() -> Iterator[tuple[str, str]]:
    """Yield the library and the extra of every call that names both in so many words."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("imported", "missing_library"):
                (extra,) = [keyword.value for keyword in node.keywords if keyword.arg == "extra"]
                if isinstance(extra, ast.Constant) and isinstance(node.args[0], ast.Constant):
                    yield node.args[0].value.partition(".")[0], extra.value


def test_every_extra_that_an_error_names_brings_the_library():
    found = set(named_in_source())
    assert {library for library, _ in found} == {"matplotlib", "pandas", "pyarrow", "numpyro"}
    for library, extra in found:
        assert library in declared(PROJECT["optional-dependencies"][extra])


def test_a_module_that_is_there_is_returned_and_another_one_is_named_with_its_extra():
    assert imported("json.decoder", part="this test", extra="plot").JSONDecoder
    with pytest.raises(ImportError, match="^this test needs no_such_library, which the extra 'plot' installs: run pip"):
        imported("no_such_library.part", part="this test", extra="plot")
    assert str(missing_library("b", part="a", extra="c")).endswith('pip install ".[c]" in a clone of metaprior.')


def texts() -> list[Path]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "reproduction").rglob("*.md")]
    return [*pages, *PACKAGE.rglob("*.py"), *(ROOT / "examples").rglob("*.py")]


def test_no_text_says_that_an_index_has_the_package():
    assert len(texts()) > 100
    found = [path.relative_to(ROOT) for path in texts() if FROM_AN_INDEX.search(path.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize("text", ["pip install metaprior", 'pip install "metaprior[plot]"', "pip install -U metaprior"])
def test_such_a_text_would_be_seen(text):
    assert FROM_AN_INDEX.search(f"To plot, `{text}`.")


@pytest.mark.parametrize("text", ['pip install ".[plot]"', "pip install -e . -e reproduction", "pip install d/*.whl"])
def test_an_installation_from_a_clone_is_no_such_text(text):
    assert not FROM_AN_INDEX.search(text)
