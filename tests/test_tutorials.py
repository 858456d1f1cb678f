"""The tutorials are notebooks that can be executed, use public names alone, and say in words what pictures show."""

import ast
import importlib
import re

import pytest

from notebooks import TUTORIALS, read_notebook, run_notebook

pages = pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)


def test_there_are_tutorials():
    assert {path.stem for path in TUTORIALS} == {"season", "table", "unknown", "experiments", "tasks"}


@pages
def test_the_front_matter_makes_the_page_a_notebook_of_python(path):
    front_matter = read_notebook(path).front_matter
    assert re.search(r"^    format_name: myst$", front_matter, flags=re.MULTILINE)
    assert re.search(r"^kernelspec:\n(?:  .*\n)*  name: python3$", front_matter, flags=re.MULTILINE)


@pages
def test_there_are_text_cells_and_one_title(path):
    notebook = read_notebook(path)
    assert len(notebook.cells) >= 5
    assert len(re.findall(r"^# ", notebook.text, flags=re.MULTILINE)) == 1
    assert "## What can go wrong" in notebook.text
    assert "## What to try next" in notebook.text


@pages
def test_every_name_that_is_imported_from_the_library_is_public(path):
    for cell in read_notebook(path).cells:
        for node in ast.walk(ast.parse(cell.code)):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "metaprior":
                public = importlib.import_module(node.module).__all__
                assert {alias.name for alias in node.names} <= set(public)
            if isinstance(node, ast.Attribute):
                assert not node.attr.startswith("_")


@pages
def test_every_picture_has_an_alternative_text(path):
    for cell in read_notebook(path).cells:
        assert bool(cell.alt) == cell.draws, cell.code
        assert ": " not in cell.alt, "YAML would read a mapping"


@pages
def test_links_lead_to_pages_that_exist(path):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read_notebook(path).text):
        assert target.startswith("https://") or (path.parent / target).exists(), target


@pytest.mark.slow
@pages
@pytest.mark.filterwarnings("error::DeprecationWarning:__main__")
def test_the_cells_run_in_their_order(path, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = run_notebook(path)
    matplotlib.pyplot.close("all")
    assert names
    assert not list(tmp_path.iterdir())
