"""What the package lets in: few dependencies with lower bounds, files by https and checksum, no code from data."""

import ast
import importlib.util
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import metaprior

ROOT = Path(__file__).parents[1]
PACKAGE = Path(metaprior.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Benchmarks compare with other libraries in the versions that the figures were made with.
PINNED_IN_BENCH = {"torch"}


def requirement_lists() -> dict[str, list[str]]:
    return {"the package": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}


def name_of(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0]


# --- dependencies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("extra", requirement_lists())
def test_every_dependency_has_a_lower_bound_and_no_other(extra):
    others = [r for r in requirement_lists()[extra] if name_of(r) != PROJECT["name"]]
    loose = {name_of(r) for r in others if not re.fullmatch(r"[A-Za-z0-9._-]+(\[[a-z0-9,]+\])?>=[0-9]+(\.[0-9]+)*", r)}
    assert loose <= (PINNED_IN_BENCH if extra == "bench" else set())


def test_dependencies_are_few():
    assert len(PROJECT["dependencies"]) <= 10


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
    extras = ("the package", "plot", "compare", "data", "cli", "hmc", "dev")
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
    assert oldest.constraints(project, ["x"]) == ["a==1", "b==2.5", "c==3"]


def test_a_job_runs_the_tests_with_the_oldest_versions():
    workflow, makefile = ROOT / ".github" / "workflows" / "ci.yml", ROOT / "Makefile"
    if not workflow.exists():
        pytest.skip("a source distribution leaves out .github")
    assert "make test-oldest" in workflow.read_text(encoding="utf-8")
    assert ".ci/oldest.py > $(OLDEST)/constraints.txt" in makefile.read_text(encoding="utf-8")


# --- data files -------------------------------------------------------------------------------------------------------


def test_the_register_names_https_addresses_and_a_checksum_for_every_file():
    entries = json.loads((PACKAGE / "datasets" / "registry.json").read_text(encoding="utf-8"))
    assert len(entries) > 300
    for name, entry in entries.items():
        assert re.fullmatch("[0-9a-f]{64}", entry["sha256"]), name
        assert entry["size"] > 0, name
        assert entry["addresses"], name
        for address in (*entry["addresses"], entry["homepage"]):
            assert address.startswith("https://"), name


# --- what the source does not do --------------------------------------------------------------------------------------


def source_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Yield the full name of everything that is imported anywhere in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def calls_of(tree: ast.AST) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the last part of the name of every function that is called, with its keywords as text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            keywords = {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg}
            yield name, keywords


#: Modules that make code of bytes, and those that reach the network or read archives but in the file that may.
FORBIDDEN = ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "ctypes", "code", "runpy")
ONLY_IN = {
    "pooch": "datasets/files.py",
    "requests": None,
    "urllib.request": None,
    "urllib3": None,
    "http.client": None,
    "socket": None,
    "ftplib": None,
    "zipfile": "datasets/archives.py",
    "tarfile": "datasets/archives.py",
    "subprocess": None,
}
#: Calls that run what they are given, or unpack it where it says.
RUNNING = ("eval", "exec", "compile", "__import__", "os.system", "os.popen", "read_pickle", "extractall", "extract")


def is_below(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def offences(path: Path, source: str) -> list[str]:
    """Return what a module does that none may do."""
    tree, place = ast.parse(source), path.as_posix()
    found = []
    for name in imports_of(tree):
        found += [name for module in FORBIDDEN if is_below(name, module)]
        found += [
            name for module, home in ONLY_IN.items() if is_below(name, module) and not (home and place.endswith(home))
        ]
    for name, keywords in calls_of(tree):
        if name in RUNNING or name.rpartition(".")[2] in ("read_pickle", "extractall", "extract"):
            found.append(f"{name}()")
        for keyword, value in keywords.items():
            if (keyword, value) in (("allow_pickle", "True"), ("shell", "True"), ("verify", "False")):
                found.append(f"{name}({keyword}={value})")
        if name.endswith(("joblib.load", "torch.load", "yaml.load", "tempfile.mktemp")):
            found.append(f"{name}()")
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return found + [text for text in texts if text.startswith("http://")]


def test_no_module_unpickles_evaluates_runs_programs_or_leaves_https():
    files = source_files()
    assert len(files) > 100
    found = {path.relative_to(PACKAGE).as_posix(): offences(path, path.read_text(encoding="utf-8")) for path in files}
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
    assert offences(Path("anywhere.py"), source)


@pytest.mark.parametrize("source", ["np.load(path, allow_pickle=False)", "import json", "x.compiled()", "evaluate(1)"])
def test_what_is_harmless_is_no_offence(source):
    assert offences(Path("anywhere.py"), source) == []


def test_the_files_that_may_are_there():
    for home in filter(None, ONLY_IN.values()):
        assert (PACKAGE / home).is_file()
