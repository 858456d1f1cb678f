"""What the package lets in: few dependencies, declared and with lower bounds, and no code from data."""

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import metaprior
from source_rules import declared, foreign_imports, loosely_bounded, name_of, offences

ROOT = Path(__file__).parents[1]
PACKAGE = Path(metaprior.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Extras that nothing in the package imports.
TOOLS = {"bench", "dev", "docs"}
#: The file that may read archives.
HOMES = {"io/unpacking.py": ("zipfile",)}
#: Benchmarks compare with other libraries in the versions that the figures were made with, and so does a bridge.
PINNED = {"bench": {"torch"}, "botorch": {"torch"}}


def requirement_lists() -> dict[str, list[str]]:
    return {"the package": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}


# --- dependencies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", requirement_lists())
def test_every_dependency_has_a_lower_bound_and_no_other(extra):
    others = [r for r in requirement_lists()[extra] if name_of(r) != PROJECT["name"]]
    assert loosely_bounded(others) <= PINNED.get(extra, set())


def test_dependencies_are_few():
    """Ten, and threadpoolctl, which scikit-learn brings along."""
    assert len(PROJECT["dependencies"]) <= 11


def test_everything_that_is_imported_is_declared_and_no_dependency_is_idle():
    extras = [r for extra, listed in PROJECT["optional-dependencies"].items() if extra not in TOOLS for r in listed]
    needed, optional = declared(PROJECT["dependencies"]), declared(extras)
    found = foreign_imports(PACKAGE)
    assert needed <= found
    assert found <= needed | optional


@pytest.fixture(scope="module")
def oldest() -> ModuleType:
    path = ROOT / ".ci" / "oldest.py"
    if not path.exists():
        pytest.skip("a source distribution leaves out .ci")
    spec = importlib.util.spec_from_file_location("oldest", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_oldest_environment_holds_every_dependency_at_its_lower_bound(oldest):
    found = dict(line.split("==") for line in oldest.constraints(PROJECT))
    extras = ("the package", "plot", "compare", "cli", "hmc", "dev")
    asked = [r for extra in extras for r in requirement_lists()[extra] if name_of(r) != PROJECT["name"]]
    assert found == {name_of(r): r.partition(">=")[2] for r in asked}
    assert found["numpy"] == next(r for r in PROJECT["dependencies"] if r.startswith("numpy")).partition(">=")[2]


@pytest.mark.parametrize("requirement", ["numpy", "numpy==2.0", "numpy>=2,<3", "numpy~=2.0", "numpy>=2; extra"])
def test_a_dependency_without_a_plain_lower_bound_is_told(oldest, requirement):
    with pytest.raises(ValueError, match="expected a dependency with a lower bound only, name>=version; got 'numpy"):
        oldest.constraints({**PROJECT, "dependencies": [requirement]})


def test_extras_that_name_extras_bring_theirs_once(oldest):
    project = {
        "name": "own",
        "dependencies": ["a>=1"],
        "optional-dependencies": {"x": ["own[y]", "b>=2.5"], "y": ["own[x]", "c[z]>=3"], "w": ["d>=4"]},
    }
    assert oldest.constraints(project, extras=["x"]) == ["a==1", "b==2.5", "c==3"]


def test_other_projects_bring_their_dependencies_but_not_each_other(oldest):
    first = {"name": "own", "dependencies": ["a>=1"], "optional-dependencies": {"dev": []}}
    second = {"name": "own-more", "dependencies": ["own[x]>=0.1", "b>=2"]}
    assert oldest.constraints(first, second) == ["a==1", "b==2"]


def test_a_job_runs_the_tests_with_the_oldest_versions():
    workflow, makefile = ROOT / ".github" / "workflows" / "ci.yml", ROOT / "Makefile"
    if not workflow.exists():
        pytest.skip("a source distribution leaves out .github")
    assert "make test-oldest" in workflow.read_text(encoding="utf-8")
    assert ".ci/oldest.py > $(OLDEST)/constraints.txt" in makefile.read_text(encoding="utf-8")


# --- what the source does not do --------------------------------------------------------------------------------------


def source_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def test_no_module_unpickles_evaluates_runs_programs_or_leaves_https():
    files = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in source_files()}
    assert len(files) > 100
    assert files.keys() >= HOMES.keys()
    found = {name: offences(source, HOMES.get(name, ())) for name, source in files.items()}
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "def f():\n    import marshal as m",
        "eval('1')",
        "exec(text)",
        "import zipfile",
        "import urllib.request",
        "import pooch",
        "np.load(path, allow_pickle=True)",
        "archive.extractall(folder)",
        "pd.read_pickle(path)",
        "os.system('ls')",
        "subprocess.run(text, shell=True)",
        "requests.get(address, verify=False)",
        "ADDRESS = 'http://example.org/a'",
    ],
)
def test_an_offence_would_be_seen(source):
    assert offences(source)


@pytest.mark.parametrize("source", ["np.load(path, allow_pickle=False)", "import json", "x.compiled()", "evaluate(1)"])
def test_what_is_harmless_is_no_offence(source):
    assert offences(source) == []
