"""Examples of pages and docstrings run as they are written; those that take long do so in `make docs` as well."""

from pathlib import Path

import pytest

from scripts import ROOT, module

#: Pages whose examples take a few seconds; `make docs` and `make test-all` run all.
QUICK = ("docs/how-to/save.md",)

PAGE = """# A
```python
a = 1
```
## B
text
```python
b = a + 1
```
```
shell
```
## C?
```py
c =
```
"""


@pytest.fixture(scope="module")
def snippets():
    return module("snippets")


def written(folder: Path, text: str, name: str = "page.md") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# --- finding ----------------------------------------------------------------------


def test_blocks_are_those_of_the_sections_asked_for_with_their_lines(snippets):
    assert [(b.section, b.line, b.piece) for b in snippets.blocks(PAGE)] == [
        ("", 3, False),
        ("B", 8, False),
        ("C?", 15, True),
    ]
    assert [b.code for b in snippets.blocks(PAGE, ["B"])] == ["b = a + 1\n"]
    with pytest.raises(ValueError, match=r"expected titles of sections; got \['D'\]"):
        snippets.blocks(PAGE, ["B", "D"])


def test_the_readme_has_the_example_that_a_release_runs(snippets):
    (first,) = snippets.blocks((ROOT / "README.md").read_text(encoding="utf-8"), ["Example"])
    assert "MetaGPRegressor" in first.code


def test_every_page_with_code_is_found_and_notebooks_are_left_to_sphinx(snippets, tmp_path):
    found = {path.relative_to(ROOT).as_posix() for path in snippets.files([ROOT / "README.md", ROOT / "docs"])}
    assert {"README.md", "docs/kernels.md", "docs/how-to/save.md", "docs/guide/model.md"} <= found
    for head in ("file_format: mystnb", "jupytext:\n  text_representation:\n    format_name: myst"):
        assert snippets.files([written(tmp_path, f"---\n{head}\n---\n```python\na\n```\n")]) == []


def test_pieces_are_python():
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    found = [(path, block) for path in paths for block in module("snippets").blocks(path.read_text(encoding="utf-8"))]
    assert any(block.piece for _, block in found)
    for path, block in found:
        compile(block.code, f"{path}:{block.line}", "exec")


# --- running ----------------------------------------------------------------------


def test_blocks_share_their_names_and_a_failure_tells_its_line(snippets, tmp_path):
    page = written(tmp_path, "```python\nx = 1\n```\n\n```python\nassert x == 1\nassert x == 2\n```\n")
    outcome = snippets.run(page)
    assert outcome.count == 2
    assert f'"{page}", line 7' in outcome.failure
    assert "AssertionError" in outcome.failure
    assert snippets.main([str(page)]) == 1


def test_a_page_runs_in_an_empty_folder(snippets, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = written(tmp_path, "```python\nimport os\nassert os.listdir() == []\nopen('new', 'w').close()\n```\n")
    assert snippets.run(page).failure == ""
    assert not (tmp_path / "new").exists()
    assert snippets.main([str(page)]) == 0


def test_a_section_that_needs_a_library_that_is_not_there_is_left_out_and_told(snippets, tmp_path, capsys):
    text = "## A\n```python\nimport no_such_library.part\n```\n```python\n1 / 0\n```\n## B\n```python\nimport os\n```\n"
    assert snippets.main([str(written(tmp_path, text))]) == 0
    assert "1 examples" in capsys.readouterr().out
    assert snippets.run(written(tmp_path, text)).left_out == ("A (needs no_such_library)",)


def test_a_docstring_that_shows_another_output_fails(snippets, tmp_path, monkeypatch):
    folder = tmp_path / "src"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    source = '"""M.\n\n    >>> 1 + 1\n    3\n"""\n'
    outcome = snippets.run(written(folder, source, "wrongly_documented.py"))
    assert (outcome.count, "Got:\n    2" in outcome.failure) == (1, True)


def test_no_files_with_examples_is_an_error(snippets, tmp_path):
    with pytest.raises(SystemExit):
        snippets.main([str(written(tmp_path, "text"))])


# --- the pages --------------------------------------------------------------------


def pages() -> list:
    """Return all pages and modules with examples; all but a few are slow."""
    try:
        found = module("snippets").files([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs", ROOT / "src"])
    except pytest.skip.Exception:
        return []
    names = [path.relative_to(ROOT).as_posix() for path in found]
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


@pytest.mark.filterwarnings("ignore")
def test_the_first_example_of_the_readme_runs(snippets):
    outcome = snippets.run(ROOT / "README.md", ["Example"])
    assert (outcome.count, outcome.failure) == (1, "")


@pytest.mark.parametrize("name", pages())
@pytest.mark.filterwarnings("ignore")
def test_the_examples_run(name, snippets, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    outcome = snippets.run(ROOT / name)
    assert outcome.failure == ""
