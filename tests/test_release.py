"""What a release and its front page promise: versions that agree, workflows that exist, badges that are true."""

import re
import tomllib
from pathlib import Path

import pytest

import metaprior
from scripts import module

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def obstacles(tag="v1.2.0", package="1.2.0", citation="version: 1.2.0", changelog="## [1.2.0] - today"):
    project, version = '[project]\nversion = "1.2.0"', f'"""The version."""\n\n__version__ = "{package}"\n'
    return list(module("release").obstacles(tag, project, version, citation, changelog))


# --- the tag ----------------------------------------------------------------------


def test_a_tag_that_agrees_with_all_files_can_be_released():
    assert obstacles() == []
    assert obstacles(citation='cff-version: 1.2.0\nversion: "1.2.0"\n', changelog="# Changelog\n\n## [1.2.0]\n") == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"tag": "1.2.0"}, "expected v1.2.0, as pyproject.toml has the version 1.2.0; got 1.2.0"),
        ({"tag": "v1.2.1"}, "expected v1.2.0, as pyproject.toml has the version 1.2.0; got v1.2.1"),
        ({"package": "1.2.1"}, 'version.py: expected __version__ = "1.2.0"; got "1.2.1".'),
        ({"citation": "cff-version: 1.2.0"}, "CITATION.cff: expected 'version: 1.2.0'; got no version"),
        ({"citation": "version: 1.2.01"}, "CITATION.cff: expected 'version: 1.2.0'; got version: 1.2.01"),
        ({"changelog": "## [Unreleased]\n\n## [1x2x0]"}, "CHANGELOG.md: expected a section"),
    ],
)
def test_a_tag_that_does_not_agree_is_told(wrong, told):
    (found,) = obstacles(**wrong)
    assert told in found


def test_the_package_and_the_citation_have_the_version_of_the_project():
    assert metaprior.__version__ == PROJECT["version"]
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


# --- workflows and the image -------------------------------------------------------


def source_of(*names: str) -> str:
    """Return the text of files that a source distribution leaves out."""
    paths = [path for name in names for path in sorted(ROOT.glob(name))]
    if not paths:
        pytest.skip(f"a source distribution leaves out {names[0]}")
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def test_workflows_and_the_image_run_targets_of_the_makefile_and_files_that_exist():
    source = source_of(".github/workflows/*.yml", "Dockerfile")
    targets = set(re.findall(r"^(?:\$\(VENV\)|([a-z-]+))(/?\.?[a-z-]*):", source_of("Makefile"), flags=re.MULTILINE))
    known = {name or f".venv{rest}" for name, rest in targets}
    asked = {word for line in re.findall(r"(?:run: |RUN )make (.+)", source) for word in line.split()}
    assert asked >= {"test", "docs", "test-oldest", "venv-locked", "dist", "sbom", "demo", ".venv/.installed-plot"}
    assert asked <= known
    scripts = set(re.findall(r"python (\S+\.py)", source))
    assert scripts == {".ci/snippets.py", ".ci/release.py"}
    assert all((ROOT / script).exists() for script in scripts)


def test_the_image_gets_what_its_dockerfile_copies_and_nothing_else():
    copied = {
        name
        for line in re.findall(r"^COPY --\S+ (.+) \S+$", source_of("Dockerfile"), flags=re.MULTILINE)
        for name in line.split()
    }
    let_in = {line[1:] for line in source_of(".dockerignore").splitlines() if line.startswith("!")}
    assert copied == let_in
    assert all((ROOT / name).exists() for name in copied)


def test_the_workflows_try_every_supported_python_on_three_systems():
    minors = [c.rpartition(" :: ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    listed = ", ".join(f'"{minor}"' for minor in minors)
    for name in ("ci", "release"):
        source = source_of(f".github/workflows/{name}.yml")
        assert f"python-version: [{listed}]" in source
        assert all(f"{system}-latest" in source for system in ("ubuntu", "macos", "windows"))


# --- badges -----------------------------------------------------------------------


def badges() -> dict[str, str]:
    """Return what every badge of the README says, by the text that stands for it."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"!\[([^\]]+)\]\((docs/badges/[a-z]+\.svg)\)", page)
    return {alt: (ROOT / path).read_text(encoding="utf-8") for alt, path in found}


def test_badges_say_what_the_project_declares():
    minors = [c.rpartition(" :: ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert set(badges()) == {
        f"Licence: {PROJECT['license']}",
        f"Python: {minors[0]} to {minors[-1]}",
        "Types: checked by mypy",
    }
    assert PROJECT["requires-python"] == f">={minors[0]}"


def test_a_badge_shows_the_text_that_stands_for_it():
    for alt, drawing in badges().items():
        label, _, value = alt.partition(": ")
        assert re.findall(r"<text[^>]*>([^<]+)</text>", drawing) == [label, value]
        assert f'aria-label="{alt}"' in drawing
        assert "http" not in drawing.replace("http://www.w3.org/2000/svg", "")
